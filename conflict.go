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

package mergebackoff

import (
	"regexp"

	"vitess.io/vitess/go/mysql/sqlerror"
)

// conflictKind says what an error of the target means to a stream in a merge.
type conflictKind int

const (
	// noConflict is every error that the ladder has nothing to say about.
	noConflict conflictKind = iota
	// duplicateKey is MySQL's 1062, on any unique index, PRIMARY included: a row
	// whose sharding key changes is a delete on one shard and an insert on
	// another.
	duplicateKey
	// lockConflict is 1213 or 1205. They come more often once streams compete
	// for the same rows, and a batched vplayer does not retry them.
	lockConflict
)

// conflict is an error of the target, understood as far as it can be.
type conflict struct {
	kind conflictKind
	err  error
	// entry and key are what MySQL says of a duplicate: the value, its parts
	// joined by '-', and the index as table.index. MySQL cuts a long entry, so
	// both are for people to read; no decision rests on them.
	entry, key string
}

// duplicateText is the message of ER_DUP_ENTRY, as MySQL 8.0 and later word it.
var duplicateText = regexp.MustCompile(`(?s)Duplicate entry '(.*)' for key '([^']*)'`)

// classify understands err, however often it was wrapped: like vreplication's
// own isUnrecoverableError it goes by the error number in the text.
func classify(err error) conflict {
	c := conflict{err: err}
	sqlErr, ok := sqlerror.NewSQLErrorFromError(err).(*sqlerror.SQLError)
	if !ok {
		return c
	}
	switch sqlErr.Number() {
	case sqlerror.ERDupEntry:
		c.kind = duplicateKey
		if m := duplicateText.FindStringSubmatch(err.Error()); m != nil {
			c.entry, c.key = m[1], m[2]
		}
	case sqlerror.ERLockDeadlock, sqlerror.ERLockWaitTimeout:
		c.kind = lockConflict
	}
	return c
}
