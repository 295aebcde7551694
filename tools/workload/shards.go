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

package workload

import (
	"bytes"
	"crypto/des"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Shards tells on which shard a row lies. It computes what Vitess's "hash"
// vindex computes, so that the load can choose rows on different shards.
type Shards struct {
	Names  []string
	ranges []keyRange
}

// keyRange is a shard's range of keyspace ids; a nil bound is open.
type keyRange struct {
	start, end []byte
}

// NewShards returns the map for shards named as in Vitess, such as "-80", "80-".
func NewShards(names ...string) (*Shards, error) {
	s := &Shards{Names: names}
	for _, name := range names {
		low, high, found := strings.Cut(name, "-")
		if !found {
			return nil, fmt.Errorf("shard %q is not a key range", name)
		}
		start, err := hex.DecodeString(low)
		if err != nil {
			return nil, fmt.Errorf("shard %q: %w", name, err)
		}
		end, err := hex.DecodeString(high)
		if err != nil {
			return nil, fmt.Errorf("shard %q: %w", name, err)
		}
		s.ranges = append(s.ranges, keyRange{start, end})
	}
	return s, nil
}

// hashCipher is the cipher of the "hash" vindex: DES with a key of zeros.
var hashCipher = func() interface{ Encrypt(dst, src []byte) } {
	block, err := des.NewCipher(make([]byte, 8))
	if err != nil {
		panic(err)
	}
	return block
}()

// keyspaceID is the vindex's value for a row.
func keyspaceID(id int64) []byte {
	var in, out [8]byte
	binary.BigEndian.PutUint64(in[:], uint64(id))
	hashCipher.Encrypt(out[:], in[:])
	return out[:]
}

// Of returns the index of the shard of a row.
func (s *Shards) Of(id int64) int {
	key := keyspaceID(id)
	for i, r := range s.ranges {
		if bytes.Compare(key, r.start) >= 0 && (len(r.end) == 0 || bytes.Compare(key, r.end) < 0) {
			return i
		}
	}
	panic(fmt.Sprintf("shards %v do not cover row %d", s.Names, id))
}

// pick returns n row ids per shard, all of them from the range that begins at
// first, and the first id behind those it looked at.
func (s *Shards) pick(first int64, n int) (ids [][]int64, next int64) {
	ids = make([][]int64, len(s.Names))
	for missing := n * len(s.Names); missing > 0; first++ {
		shard := s.Of(first)
		if len(ids[shard]) < n {
			ids[shard] = append(ids[shard], first)
			missing--
		}
	}
	return ids, first
}
