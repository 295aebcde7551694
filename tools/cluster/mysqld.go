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
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MySQL is one mysqld of the cluster. It is run directly, and not through
// mysqlctl, which would detach it: as a child it can be killed, and it dies
// with this process. mysqlctl still writes its my.cnf, which depends on the
// versions of both Vitess and MySQL.
type MySQL struct {
	*Process
	// Socket is the path of its Unix socket.
	Socket string
	// Database is the name of the keyspace's database.
	Database string

	cluster *Cluster
	uid     int
	port    int
}

// firstUID is the first tablet's number.
const firstUID = 100

// tabletDir is the name of a tablet's directory in VTDATAROOT.
func tabletDir(uid int) string {
	return fmt.Sprintf("vt_%010d", uid)
}

// extraCnf is a file of settings that are added to my.cnf.
func (c *Cluster) extraCnf() string {
	return filepath.Join(c.dir, "extra.cnf")
}

// writeExtraCnf makes the servers small and quick. They do not wait for the
// disk on commit: a killed mysqld loses nothing by that, only a power failure
// would, and after that the cluster is gone anyway.
func (c *Cluster) writeExtraCnf() error {
	const settings = `bind-address = 127.0.0.1
innodb_buffer_pool_size = 128M
innodb_flush_log_at_trx_commit = 2
sync_binlog = 0
loose_mysqlx = 0
loose_innodb_redo_log_capacity = 64M
`
	return os.WriteFile(c.extraCnf(), []byte(settings), 0o644)
}

// newMySQL describes the server of a tablet.
func (c *Cluster) newMySQL(uid, port int, keyspace string) (*MySQL, error) {
	mysqld, err := c.opts.mysqld()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.dir, tabletDir(uid))
	process := c.process(
		"mysqld-"+strconv.Itoa(uid), mysqld,
		"--defaults-file="+filepath.Join(dir, "my.cnf"),
		"--basedir="+c.opts.MySQLRoot,
	)
	return &MySQL{
		Process:  process,
		Socket:   filepath.Join(dir, "mysql.sock"),
		Database: "vt_" + keyspace,
		cluster:  c,
		uid:      uid,
		port:     port,
	}, nil
}

// startMySQLs prepares and starts all servers.
func (c *Cluster) startMySQLs(ctx context.Context) error {
	if err := c.writeExtraCnf(); err != nil {
		return err
	}
	script, err := os.ReadFile(c.opts.InitDB)
	if err != nil {
		return err
	}
	return forEach(c.tablets, func(tablet *Tablet) error {
		return tablet.MySQL.create(ctx, string(script))
	})
}

// create makes a fresh server and prepares it for Vitess.
func (m *MySQL) create(ctx context.Context, script string) error {
	c := m.cluster
	mysqlctl := filepath.Join(c.opts.Bin, "mysqlctl")
	_, err := c.ids.run(
		ctx, c.env(), c.dir, mysqlctl,
		"--tablet-uid", strconv.Itoa(m.uid),
		"--mysql-port", strconv.Itoa(m.port),
		"--logtostderr",
		"init_config",
	)
	if err != nil {
		return err
	}
	if _, err := c.ids.run(ctx, c.env(), c.dir, m.path, append(m.args, "--initialize-insecure")...); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(m.errorLog(), 12))
	}
	if err := m.Start(); err != nil {
		return err
	}
	if err := m.waitReady(ctx, "root"); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(m.errorLog(), 12))
	}
	db, err := m.open("root", "", true)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, script); err != nil {
		return fmt.Errorf("prepare %s for Vitess: %w", m.Name, err)
	}
	return nil
}

// Restart starts the server again after it was killed, and waits until it
// accepts connections.
func (m *MySQL) Restart(ctx context.Context) error {
	// A killed mysqld leaves the lock of its socket behind.
	_ = os.Remove(m.Socket + ".lock")
	if err := m.Start(); err != nil {
		return err
	}
	return m.waitReady(ctx, "vt_dba")
}

// waitReady waits until the server accepts connections.
func (m *MySQL) waitReady(ctx context.Context, user string) error {
	return waitFor(ctx, m.Name, []*Process{m.Process}, func(ctx context.Context) error {
		db, err := m.open(user, "", false)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.PingContext(ctx)
	})
}

// Open connects to the keyspace's database, past Vitess. The caller closes it.
func (m *MySQL) Open() (*sql.DB, error) {
	return m.open("vt_dba", m.Database, false)
}

// open connects over the socket.
func (m *MySQL) open(user, database string, multi bool) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User = user
	config.Net, config.Addr = "unix", m.Socket
	config.DBName = database
	config.MultiStatements = multi
	return openDB(config)
}

// Gate connects to vtgate. The target is a keyspace, or keyspace:shard to
// bypass the routing. The caller closes it.
func (c *Cluster) Gate(target string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.User = "demo"
	config.Net, config.Addr = "tcp", loopback(c.gatePort)
	config.DBName = target
	config.InterpolateParams = true
	return openDB(config)
}

// openDB makes a pool with the settings that all connections share.
func openDB(config *mysql.Config) (*sql.DB, error) {
	config.Timeout = 10 * time.Second
	// Lost connections are expected while servers start, stop or are killed;
	// the errors are returned, so the driver need not print them as well.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// errorLog is where my.cnf sends mysqld's messages.
func (m *MySQL) errorLog() string {
	return filepath.Join(m.cluster.dir, tabletDir(m.uid), "error.log")
}

// saveErrorLogs copies what mysqld wrote to its own files to the other logs.
func (c *Cluster) saveErrorLogs() {
	for _, tablet := range c.tablets {
		if tablet.MySQL == nil {
			continue
		}
		if data, err := os.ReadFile(tablet.MySQL.errorLog()); err == nil {
			_ = os.WriteFile(tablet.MySQL.LogFile+".error", data, 0o644)
		}
	}
}
