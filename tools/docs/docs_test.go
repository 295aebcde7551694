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

// Package docs checks the files in docs against what they speak of.
package docs

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const stats = "../../hooks/common/files/go/vt/vttablet/tabletmanager/vreplication/merge_backoff_stats.go"

// prometheusName is how Vitess's Prometheus backend calls a variable of vttablet.
func prometheusName(name string) string {
	var b strings.Builder
	b.WriteString("vttablet")
	for i, r := range name {
		// VReplication is v_replication there.
		if unicode.IsUpper(r) && (i == 0 || !unicode.IsUpper(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1]))) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// exported are the metrics that the adapter exports, by their names in Prometheus.
// TestMergeBackoffMetrics shows, in Vitess, that Prometheus gets them so.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	source, err := os.ReadFile(stats)
	require.NoError(t, err)
	names := make(map[string]bool)
	for _, match := range regexp.MustCompile(`"(VReplicationMerge\w+)"`).FindAllStringSubmatch(string(source), -1) {
		names[prometheusName(match[1])] = true
	}
	require.Len(t, names, 5)
	return names
}

// TestDashboard shows that the dashboard is valid JSON, and that it queries each
// metric of merge backoff and no other one of that name.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	names := exported(t)
	queried := make(map[string]bool)
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, name := range regexp.MustCompile(`vttablet_v_replication_merge_\w+`).FindAllString(panel.Targets[0].Expr, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			assert.Contains(t, names, name, panel.Title)
			queried[name] = true
		}
	}
	assert.Equal(t, names, queried)
}

// TestOperatorsGuide shows that the guide names each metric.
func TestOperatorsGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators.md")
	require.NoError(t, err)
	for name := range exported(t) {
		assert.Contains(t, string(text), "`"+strings.TrimPrefix(name, "vttablet_v_replication_merge_")+"`")
	}
}
