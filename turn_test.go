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
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTurn shows that there is one turn, that it goes on in the order of the
// queue, and that it is never lost with a stream that leaves.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn turn
		require.NoError(t, turn.take(t.Context()))

		var order []int
		for i := range 3 {
			go func() {
				if assert.NoError(t, turn.take(t.Context())) {
					order = append(order, i)
					turn.end()
				}
			}()
			synctest.Wait()
		}
		assert.Empty(t, order, "there is one turn")
		turn.end()
		synctest.Wait()
		assert.Equal(t, []int{0, 1, 2}, order)

		// A stream that is being stopped does not wait for the turn, and makes no
		// further attempt even if it is free.
		require.NoError(t, turn.take(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- turn.take(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		turn.end()
		require.ErrorIs(t, turn.take(ctx), context.Canceled)

		// One that leaves just when its turn has come passes it on.
		first, second := turn.queue(), turn.queue()
		third := turn.queue()
		assert.True(t, isClosed(first))
		turn.leave(second)
		turn.leave(first)
		assert.True(t, isClosed(third))
		turn.end()
		require.NoError(t, turn.take(t.Context()))
	})
}
