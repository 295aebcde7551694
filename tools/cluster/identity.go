/*
Copyright 2026 The Vitess Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// User is the unprivileged account that runs the cluster when the caller is
// root: mysqld and mysqlctl refuse to run as root.
const User = "mergebackoff"

// Linux capability numbers, from capabilities(7).
const (
	capDacOverride   = 1
	capDacReadSearch = 2
)

// identity says as whom the cluster's processes run.
type identity struct {
	// cred is nil when the caller is not root: children run as the caller.
	cred *syscall.Credential
	// caps lets the children read what the caller can read. It is needed when
	// root's checkout lies in a directory that other users cannot enter.
	caps []uintptr
}

// newIdentity chooses the account, creating it if need be, and makes sure that
// the given programs can be run by it.
func newIdentity(ctx context.Context, programs []string) (*identity, error) {
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("program missing: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return &identity{}, nil
	}
	cred, err := lookupUser(ctx)
	if err != nil {
		return nil, err
	}
	for _, caps := range [][]uintptr{nil, {capDacReadSearch}, {capDacOverride}} {
		ids := &identity{cred: cred, caps: caps}
		if ids.canRun(ctx, programs) {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("user %s cannot read the programs in %v: make their directories enterable (chmod o+x)", User, programs)
}

// lookupUser returns the ids of the unprivileged account.
func lookupUser(ctx context.Context) (*syscall.Credential, error) {
	account, err := user.Lookup(User)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		add := exec.CommandContext(ctx, "useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", User)
		if out, err := add.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("mysqld does not run as root, and the user %s cannot be created: %w: %s", User, err, out)
		}
		account, err = user.Lookup(User)
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// canRun tells whether every program can be read and run under this identity.
func (ids *identity) canRun(ctx context.Context, programs []string) bool {
	const probe = `for p; do test -r "$p" && test -x "$p" || exit 1; done`
	_, err := ids.run(ctx, nil, "/", "/bin/sh", append([]string{"-c", probe, "probe"}, programs...)...)
	return err == nil
}

// sysProcAttr gives each child its own session, so that a Ctrl-C in the
// terminal reaches only the caller, which ends the children in order.
func (ids *identity) sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:      true,
		Pdeathsig:   syscall.SIGKILL,
		Credential:  ids.cred,
		AmbientCaps: ids.caps,
	}
}

// commandLine is what to execute to run a program under this identity. The
// capabilities take effect only with the first execve, which needs them already
// when it looks for the program; so a shell comes first, and executes it.
func (ids *identity) commandLine(path string, args []string) (string, []string) {
	if len(ids.caps) == 0 {
		return path, args
	}
	return "/bin/sh", append([]string{"-c", `exec "$0" "$@"`, path}, args...)
}

// own gives a file or directory to the account that runs the cluster.
func (ids *identity) own(path string) error {
	if ids.cred == nil {
		return nil
	}
	return os.Chown(path, int(ids.cred.Uid), int(ids.cred.Gid))
}
