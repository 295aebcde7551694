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
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options says which cluster to start, and from which programs.
type Options struct {
	// Bin is the directory of etcd, mysqlctl, vtctld, vtctldclient and vtgate.
	Bin string
	// Vttablet is the path of the vttablet to use, patched or not.
	Vttablet string
	// MySQLRoot is the prefix of the MySQL server, as in VT_MYSQL_ROOT.
	MySQLRoot string
	// InitDB is the SQL file that prepares a fresh MySQL server for Vitess:
	// config/init_db.sql of the Vitess source tree.
	InitDB string
	// LogDir receives one log per process. It is created, and stays.
	LogDir string
	// Keyspaces lists what to create.
	Keyspaces []Keyspace
	// TabletFlags and GateFlags are added to the command lines.
	TabletFlags []string
	GateFlags   []string
	// Keep leaves the data directory in place after Close.
	Keep bool
	// StepTimeout bounds each step of the start; the default is two minutes.
	StepTimeout time.Duration
	// Out receives a line for each step; nil is silence.
	Out io.Writer
}

// Keyspace is one keyspace to create.
type Keyspace struct {
	Name string
	// Shards are created in this order. A shard that overlaps an earlier one is
	// created not serving, as the target of a Reshard has to be.
	Shards []Shard
	// Schema is SQL that is applied to every shard.
	Schema string
	// VSchema is JSON.
	VSchema string
}

// Shard is one shard to create.
type Shard struct {
	Name string
	// Tablets is the number of tablets, the first of which becomes primary; 0 means 1.
	Tablets int
}

const (
	cell               = "zone1"
	defaultStepTimeout = 2 * time.Minute
)

// programs lists every file that the cluster's account must be able to run.
func (o *Options) programs() ([]string, error) {
	mysqld, err := o.mysqld()
	if err != nil {
		return nil, err
	}
	list := []string{o.Vttablet, mysqld}
	for _, name := range []string{"etcd", "mysqlctl", "vtctld", "vtctldclient", "vtgate"} {
		list = append(list, filepath.Join(o.Bin, name))
	}
	return list, nil
}

// mysqld finds the server below MySQLRoot, in the places Vitess looks.
func (o *Options) mysqld() (string, error) {
	for _, dir := range []string{"sbin", "bin", "libexec", "scripts"} {
		path := filepath.Join(o.MySQLRoot, dir, "mysqld")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no mysqld in sbin or bin of %q (VT_MYSQL_ROOT)", o.MySQLRoot)
}

// complete checks the options, makes paths absolute and fills in defaults.
func (o *Options) complete() error {
	if o.LogDir == "" || len(o.Keyspaces) == 0 {
		return errors.New("cluster: LogDir and Keyspaces are required")
	}
	for _, path := range []*string{&o.Bin, &o.Vttablet, &o.MySQLRoot, &o.InitDB, &o.LogDir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if _, err := os.Stat(o.InitDB); err != nil {
		return fmt.Errorf("the SQL that prepares MySQL for Vitess is missing: %w", err)
	}
	if o.StepTimeout == 0 {
		o.StepTimeout = defaultStepTimeout
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return os.MkdirAll(o.LogDir, 0o755)
}
