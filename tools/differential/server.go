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

package differential

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Server is a mysqld of its own, with its data in a temporary folder.
type Server struct {
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
	log    bytes.Buffer
}

const (
	// startTime is for how long a server may take to start, and stopTime to stop.
	startTime = 2 * time.Minute
	stopTime  = 30 * time.Second
)

// StartServer starts the mysqld of an installation, such as scripts/mysql.sh finds.
func StartServer(ctx context.Context, root string) (*Server, error) {
	program := ""
	for _, dir := range []string{"sbin", "bin", "libexec"} {
		path := filepath.Join(root, dir, "mysqld")
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			program = path
			break
		}
	}
	if program == "" {
		return nil, fmt.Errorf("no mysqld in %s/{sbin,bin,libexec}", root)
	}
	dir, err := os.MkdirTemp("", "mergebackoff-differential-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, exited: make(chan struct{})}
	if err := s.start(ctx, program); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w\n%s", err, s.log.Bytes())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, program string) error {
	args := []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data")}
	// Without being told, mysqld does not run as root.
	if me, err := user.Current(); err == nil && me.Uid == "0" {
		args = append(args, "--user="+me.Username)
	}
	initialize := exec.CommandContext(ctx, program, append(args, "--initialize-insecure")...)
	initialize.Stdout, initialize.Stderr = &s.log, &s.log
	if err := initialize.Run(); err != nil {
		return fmt.Errorf("%s --initialize-insecure: %w", program, err)
	}
	// Nothing has to survive: the less it syncs the better.
	s.cmd = exec.Command(program, append(args,
		"--socket="+s.socket(), "--skip-networking", "--mysqlx=OFF", "--skip-log-bin",
		"--pid-file="+filepath.Join(s.dir, "pid"), "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0",
		"--max-connections=1000", "--secure-file-priv=NULL", "--innodb-buffer-pool-size=256M",
	)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	return s.await(ctx)
}

func (s *Server) socket() string { return filepath.Join(s.dir, "sock") }

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	db, err := s.Open("")
	if err != nil {
		return err
	}
	defer db.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("mysqld has ended")
		case <-ctx.Done():
			return fmt.Errorf("mysqld does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// Open connects to a database of the server, with the session that vreplication has.
func (s *Server) Open(database string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "unix", s.socket(), database
	// A change that finds its row counts, also where it changes nothing.
	config.ClientFoundRows = true
	config.Logger = &mysql.NopLogger{}
	config.Params = map[string]string{
		"foreign_key_checks":       "0",
		"sql_mode":                 "'NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'",
		"innodb_lock_wait_timeout": "1",
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Version is what the server says it is.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	db, err := s.Open("")
	if err != nil {
		return "", err
	}
	defer db.Close()
	return version, db.QueryRowContext(ctx, "select version()").Scan(&version)
}

// Stop ends the server, and removes its data.
func (s *Server) Stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
		case <-time.After(stopTime):
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
	}
	_ = os.RemoveAll(s.dir)
}
