//go:build go1.25

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
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestSeats: streams that stand still are listed by id, and a stream that was
// started again keeps its new seat.
func TestSeats(t *testing.T) {
	var s seats
	one, two, three := &seat{id: 1}, &seat{id: 2}, &seat{id: 3}
	for _, seat := range []*seat{three, one, two} {
		s.sit(seat)
	}
	assert.Equal(t, []*seat{one, three}, s.others(two), "by their ids")

	s.leave(one)
	assert.Equal(t, []*seat{three}, s.others(two))

	// A stream that was started again sits in a new seat, which the end of its
	// old run does not take from it.
	again := &seat{id: 3}
	s.sit(again)
	s.leave(three)
	assert.Equal(t, []*seat{again}, s.others(two))
}

// TestCommitForSeats: a leader commits for all members of an attempt or for
// none, and a stream does not leave during the COMMIT.
func TestCommitForSeats(t *testing.T) {
	errCommit := errors.New("connection lost")
	tests := []struct {
		name string
		// before runs before the COMMIT.
		before func(s *seats, members []*seat)
		err    error
		all    bool
	}{
		{name: "all are there", all: true},
		{name: "the COMMIT fails", err: errCommit, all: true},
		{
			name:   "one has withdrawn",
			before: func(s *seats, members []*seat) { s.leave(members[1]) },
		},
		{
			name: "another one has",
			before: func(s *seats, _ []*seat) {
				other := &seat{id: 9}
				s.sit(other)
				s.leave(other)
			},
			all: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s seats
			members := []*seat{{id: 1}, {id: 2}}
			for _, member := range members {
				s.sit(member)
			}
			if tt.before != nil {
				tt.before(&s, members)
			}
			ran := false
			all, err := s.commit(members, func() error {
				ran = true
				return tt.err
			})
			assert.Equal(t, tt.all, all)
			assert.Equal(t, tt.all, ran)
			assert.Equal(t, tt.err, err)
			s.leave(members[0])
			assert.Nil(t, s.committing, "no COMMIT is left to wait for")
		})
	}
}

// TestLeaveWaitsForCommit shows that a stream that is stopped in the middle of a
// COMMIT is gone only after it: its next run must not read the position before.
func TestLeaveWaitsForCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seats
		members := []*seat{{id: 1}, {id: 2}}
		for _, member := range members {
			s.sit(member)
		}
		inCommit, goOn := make(chan struct{}), make(chan struct{})
		go func() {
			all, err := s.commit(members, func() error {
				close(inCommit)
				<-goOn
				return nil
			})
			assert.True(t, all)
			assert.NoError(t, err)
		}()
		<-inCommit
		left := make(chan struct{})
		go func() {
			s.leave(members[1])
			close(left)
		}()
		synctest.Wait()
		assert.False(t, isClosed(left))
		close(goOn)
		<-left
		assert.Equal(t, []*seat{members[0]}, s.others(members[1]))
	})
}
