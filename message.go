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
	"fmt"
	"strings"
	"time"
	"unicode"

	"vitess.io/vitess/go/mysql/sqlerror"
)

const (
	// MessagePrefix begins every message that merge backoff writes.
	MessagePrefix = "merge backoff: "
	// givingUp begins what giveUp is told.
	givingUp = MessagePrefix + "giving up on "
)

// waitMessage says in one line what a stream waits for, since when, who has it and
// who may release it. The message column cuts the middle out of what is longer than
// 1000 characters, so the value and the list of peers are kept short.
func waitMessage(c conflict, since time.Time, peers []Stream, held string) string {
	return fmt.Sprintf("%swaiting since %s for %s%s to be released by %s",
		MessagePrefix, since.UTC().Format(time.RFC3339), c.what(), held, listPeers(peers))
}

// held names the row that has the value, and its stream, as far as that is known.
func (r *resolution) held() string {
	c := r.collision
	if c == nil || c.kind != duplicateKey || c.holder.table == "" {
		return ""
	}
	text := ", held by the row with primary key " + c.change.Table.describe(c.holder.row)
	if c.owner != 0 || len(r.peers) == 1 {
		text += " of " + r.owner(c)
	}
	return text + ","
}

// owner names the stream whose row has the value, or those of which one must be it.
func (r *resolution) owner(c *collision) string {
	if c.owner != 0 {
		return r.hub.name(c.owner)
	}
	return oneOf(r.peers)
}

// verdict says why a stream gives up, with the value, both rows and the streams.
func (r *resolution) verdict(why string) string {
	text := givingUp + r.ladder.last.what()
	if c := r.collision; c != nil && c.kind == duplicateKey {
		if c.holder.table != "" {
			text += ", held by the row with primary key " + c.change.Table.describe(c.holder.row)
			// Its stream may have been deleted.
			if c.owner != 0 || len(r.peers) > 0 {
				text += " of " + r.owner(c)
			}
		}
		text += fmt.Sprintf(", wanted by the row with primary key %s of %s", c.change.Table.describe(c.row.row), r.hub.name(r.config.ID))
	}
	limit := r.limit()
	if limit == "" {
		return text + ": " + why
	}
	// The sources may be right, and only the way is barred.
	return text + ": " + strings.TrimPrefix(why, genuine) + "; " + limit
}

// limit says what kept the stream from looking further for a release; empty if
// nothing did.
func (r *resolution) limit() string {
	switch c := r.collision; {
	case r.unfoldable != "":
		return "the transaction could not be reordered: " + r.unfoldable
	case c != nil && c.behind != "":
		return "its release is in, or behind, a transaction of this stream that could not be reordered: " + c.behind
	case r.window != nil && r.window.closed != "":
		return "nothing could be taken in from behind " + r.window.closed
	case !r.roomLeft():
		return fmt.Sprintf("the stream could look no further ahead than %d bytes of row images", r.queue.most())
	case r.window != nil && r.window.reshaped != "":
		return "row images of table " + r.window.reshaped + " before and after a DDL do not go together"
	case len(r.suspicion.barred) > 0:
		var names []string
		for _, id := range r.suspicion.barred {
			names = append(names, r.hub.name(id))
		}
		return "what these streams have yet to apply could not be taken in: " + strings.Join(names, ", ")
	}
	return ""
}

// giveUp returns the error that ends a stream at a conflict. MySQL's own error
// number stays, by which the controller knows that it is final; its text comes
// last and without the query, since the message column takes 1000 characters.
func giveUp(cause conflict, text string) error {
	number, state, message := sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, cause.err.Error()
	if sqlErr, ok := sqlerror.NewSQLErrorFromError(cause.err).(*sqlerror.SQLError); ok {
		number, state, message = sqlErr.Num, sqlErr.State, shorten(sqlErr.Message, 200)
	}
	if cause.key != "" {
		message = fmt.Sprintf("Duplicate entry '%s' for key '%s'", shorten(cause.entry, 60), cause.key)
	}
	return sqlerror.NewSQLErrorf(number, state, "%s: %s", text, message)
}

// isVerdict reports whether an error is one that giveUp made, however it was wrapped
// since: vterrors keeps the text only. Behind the first quote there are values.
func isVerdict(err error) bool {
	text, _, _ := strings.Cut(err.Error(), "'")
	return strings.Contains(text, givingUp)
}

// oneOf names the peer, or peers, one of which is meant.
func oneOf(peers []Stream) string {
	if len(peers) == 1 {
		return peers[0].String()
	}
	return "one of " + listPeers(peers)
}

// what names what is in conflict.
func (c conflict) what() string {
	switch {
	case c.kind == lockConflict:
		return "a row lock"
	case c.key != "":
		return fmt.Sprintf("the value '%s' of key %s", shorten(c.entry, 120), c.key)
	default:
		return "a unique value"
	}
}

// listPeers names the peers; of many only the first, and those that need an
// operator before they can help.
func listPeers(peers []Stream) string {
	const most = 2
	var movable, stuck []string
	for _, p := range peers {
		if p.canMove() {
			movable = append(movable, p.String())
		} else {
			stuck = append(stuck, p.String())
		}
	}
	var parts []string
	if len(movable) > most {
		movable = append(movable[:most], fmt.Sprintf("%d more", len(movable)-most))
	}
	parts = append(parts, movable...)
	if len(stuck) > most {
		stuck = append(stuck[:most], fmt.Sprintf("%d more", len(stuck)-most))
	}
	if len(stuck) > 0 {
		parts = append(parts, "or, once it is started again, "+strings.Join(stuck, ", "))
	}
	return strings.Join(parts, ", ")
}

// shorten makes one line of valid UTF-8 of a text, and cuts the middle out of one
// that is longer than most bytes.
func shorten(s string, most int) string {
	if len(s) > most {
		half := (most - 3) / 2
		s = s[:half] + "..." + s[len(s)-half:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}
