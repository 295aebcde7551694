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
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Summary adds up what was compared.
type Summary struct {
	// Histories were compared as a whole, and Cut in part.
	Histories, Cut int
	// Deeds are statements, and ends of transactions, that the server did as well;
	// LeftOut those behind a cut.
	Deeds, LeftOut int
	// Errors counts statements that failed on both, by the error's number.
	Errors map[int]int
	// LockErrors are statements that were not compared, since they failed for locks.
	LockErrors int
	// Differences are reports.
	Differences []string
}

func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d histories (%d of them in part), %d statements and commits compared", s.Histories+s.Cut, s.Cut, s.Deeds)
	for _, errno := range []int{1062} {
		fmt.Fprintf(&b, ", %d of them failed on both with error %d", s.Errors[errno], errno)
	}
	fmt.Fprintf(&b, "; left out: %d that failed for locks, %d behind a wait that only the server has; %d differences", s.LockErrors, s.LeftOut, len(s.Differences))
	return b.String()
}

// Compare replays recordings on a server, several at a time, each worker in a database
// of its own.
func (s *Summary) Compare(ctx context.Context, server *Server, databases []string, recordings []*Recording) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := make(chan *Recording)
	for _, database := range databases {
		wg.Go(func() {
			for r := range next {
				difference, done, err := Replay(ctx, server, database, r)
				mu.Lock()
				if err != nil && !errors.Is(err, errCut) {
					failed = fmt.Errorf("%s, seed %d: %w", r.Name, r.Seed, err)
				}
				s.add(r, difference, done, errors.Is(err, errCut))
				mu.Unlock()
			}
		})
	}
	for _, r := range recordings {
		next <- r
	}
	close(next)
	wg.Wait()
	return failed
}

func (s *Summary) add(r *Recording, difference string, done int, cut bool) {
	if s.Errors == nil {
		s.Errors = make(map[int]int)
	}
	if cut {
		s.Cut++
		s.LeftOut += len(r.Deeds) - done
	} else {
		s.Histories++
	}
	if difference != "" {
		s.Differences = append(s.Differences, difference)
	}
	s.Deeds += done
	s.LockErrors += r.LockErrors
	for _, deed := range r.Deeds[:done] {
		if deed.Errno != 0 {
			s.Errors[deed.Errno]++
		}
	}
}

// Databases makes so many databases.
func (s *Server) Databases(ctx context.Context, n int) (names []string, err error) {
	db, err := s.Open("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for i := range n {
		name := fmt.Sprintf("differential_%d", i)
		if _, err := db.ExecContext(ctx, "create database "+name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
