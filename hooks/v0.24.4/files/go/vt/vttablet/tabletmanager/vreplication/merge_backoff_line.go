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

package vreplication

import (
	"log/slog"
	"time"

	"vitess.io/vitess/go/vt/log"
)

// This file has what merge backoff needs of vreplication that is not the same in
// all release lines.

// deferStall keeps the relay log from taking a wait for a stall, as vplayer does
// where it is throttled.
func (vp *vplayer) deferStall() {
	vp.lastThrottledNano.Store(int64(time.Since(vplayerThrottleEpoch)))
}

// setMergeConnection has the connection take several statements in one query, or
// not, as batchMode says.
func (vp *vplayer) setMergeConnection() error {
	return vp.setConnectionBatchMode()
}

func mergeLogError(msg string, attrs ...slog.Attr) { log.Error(msg, attrs...) }
func mergeLogWarn(msg string, attrs ...slog.Attr)  { log.Warn(msg, attrs...) }
func mergeLogInfo(msg string, attrs ...slog.Attr)  { log.Info(msg, attrs...) }
