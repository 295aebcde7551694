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

package main

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

type (
	// report is what the chart shows of the benchmark's JSON.
	report struct {
		MySQL        string   `json:"mysql"`
		Go           string   `json:"go"`
		CPUs         int      `json:"cpus"`
		Transactions int      `json:"transactions"`
		Rounds       int      `json:"rounds"`
		Results      []result `json:"results"`
		Latency      *latency `json:"latency"`
	}

	result struct {
		Name    string  `json:"name"`
		Against string  `json:"against"`
		AtLeast float64 `json:"at_least"`
		Ratio   float64 `json:"ratio"`
		Median  struct {
			PerSecond float64 `json:"transactions_per_second"`
			PeakRSS   float64 `json:"peak_rss_mib"`
		} `json:"median"`
	}

	latency struct {
		Milliseconds float64 `json:"milliseconds"`
		Commits      float64 `json:"commits"`
		AtMost       float64 `json:"at_most"`
	}
)

const (
	chartWidth = 900
	barsLeft   = 230
	barsWidth  = 330
	rowHeight  = 30
	barHeight  = 18
	rowsTop    = 84
)

// chart draws the report as SVG. It has colours of its own, background
// included, since a page may be light or dark.
func chart(r report) string {
	var b strings.Builder
	height := rowsTop + rowHeight*len(r.Results) + 66
	text := func(x, y int, style, format string, args ...any) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, style, escape(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#222">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, height)
	text(16, 28, `font-size="16" font-weight="bold"`, "Drain of %s single-row source transactions", thousands(float64(r.Transactions)))
	text(16, 48, `fill="#666"`, "batching on, medians of %d rounds; MySQL %s, %s, %d CPUs", r.Rounds, r.MySQL, r.Go, r.CPUs)
	for _, column := range []struct {
		x     int
		title string
	}{{barsLeft, "transactions a second"}, {640, "ratio"}, {700, "goal"}, {770, "peak MiB"}} {
		text(column.x, rowsTop-10, `fill="#666" font-size="12"`, "%s", column.title)
	}
	most := 0.0
	for _, result := range r.Results {
		most = max(most, result.Median.PerSecond)
	}
	for i, result := range r.Results {
		y := rowsTop + i*rowHeight
		base := y + barHeight - 4
		text(barsLeft-10, base, `text-anchor="end"`, "%s", result.Name)
		width := 0
		if most > 0 {
			width = int(barsWidth * result.Median.PerSecond / most)
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", barsLeft, y, width, barHeight, colour(result))
		text(barsLeft+width+6, base, "", "%s", thousands(result.Median.PerSecond))
		if result.AtLeast > 0 {
			text(640, base, verdictStyle(result.Ratio >= result.AtLeast), "%.2f", result.Ratio)
			text(700, base, "", "%.2f", result.AtLeast)
		}
		text(770, base, "", "%.0f", result.Median.PeakRSS)
	}
	y := rowsTop + rowHeight*len(r.Results) + 18
	text(16, y, `fill="#666"`, "A ratio is that to the same with stock, without conflicts or, for 16 streams, with 3: the median of those within a round.")
	if l := r.Latency; l != nil {
		text(16, y+24, verdictStyle(l.Commits <= l.AtMost),
			"A stream that waited commits %.2f ms after the commit that released the value: %.1f target commits (goal: at most %.0f)",
			l.Milliseconds, l.Commits, l.AtMost)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// colour tells apart what is compared with nothing.
func colour(r result) string {
	if r.Against == "" {
		return "#9aa5b1"
	}
	return "#3b7dd8"
}

func verdictStyle(ok bool) string {
	if ok {
		return `fill="#1a7f37"`
	}
	return `fill="#c0392b" font-weight="bold"`
}

func escape(s string) string {
	var b strings.Builder
	// It fails only if the builder does.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// thousands writes a number with commas.
func thousands(f float64) string {
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
