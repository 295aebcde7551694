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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// switchPlayer is a player of which only SetBatching is called.
type switchPlayer struct {
	Player
	calls []bool
	err   error
}

func (p *switchPlayer) SetBatching(on bool) error {
	p.calls = append(p.calls, on)
	return p.err
}

// TestBatching: the player is told of a change of the mode only, and an
// isolated stream groups no commits.
func TestBatching(t *testing.T) {
	player := &switchPlayer{}
	b := batching{player: player}
	assert.True(t, b.mayGroup(1000), "a stream groups to begin with")

	require.NoError(t, b.restore())
	assert.Empty(t, player.calls, "the player's own way is not set again")

	require.NoError(t, b.isolate())
	require.NoError(t, b.isolate())
	assert.Equal(t, []bool{false}, player.calls, "the player is told only of a change")
	assert.False(t, b.mayGroup(1000), "an isolated stream does not group")

	require.NoError(t, b.restore())
	assert.Equal(t, []bool{false, true}, player.calls)
	assert.True(t, b.mayGroup(1000))
}

// TestBatchingFails shows that the mode stays what the player has if the player
// cannot switch.
func TestBatchingFails(t *testing.T) {
	player := &switchPlayer{err: errors.New("connection refuses")}
	b := batching{player: player}
	require.ErrorIs(t, b.isolate(), player.err)
	assert.True(t, b.mayGroup(1000))

	player.err = nil
	require.NoError(t, b.isolate())
	assert.Equal(t, []bool{false, false}, player.calls)
	assert.False(t, b.mayGroup(1000))
}

// TestSmallGroups shows how a group is kept small, and that it is without a limit
// again after some that went through.
func TestSmallGroups(t *testing.T) {
	b := batching{}
	b.grow()
	assert.True(t, b.mayGroup(1e6), "without a limit there is nothing to grow")
	b.shrink()
	assert.True(t, b.mayGroup(leastGrouped-1))
	assert.False(t, b.mayGroup(leastGrouped))
	b.grow()
	assert.True(t, b.mayGroup(leastGrouped))
	for range 8 {
		b.grow()
	}
	assert.True(t, b.mayGroup(1e6))
}
