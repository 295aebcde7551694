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
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"mergebackoff/tools/demo"
)

type (
	// series is one line of a panel; a value that is not known is NaN.
	series struct {
		name   string
		values []float64
	}

	// panel is one of the charts that stand below each other.
	panel struct {
		title  string
		series []series
	}

	// drawing is an SVG in the making, with the scale of its x axis.
	drawing struct {
		strings.Builder
		seconds []float64
	}
)

const (
	chartWidth  = 900
	plotLeft    = 64
	plotRight   = 730
	panelTop    = 96
	panelHeight = 120
	panelPitch  = 176
)

var colours = []string{"#3b7dd8", "#d9822b", "#1a7f37", "#8e44ad", "#c0392b"}

// chart draws the samples as SVG. It has colours of its own, background
// included, since a page may be light or dark.
func chart(s demo.Samples) string {
	panels := []panel{load(s), lag(s), conflicts(s), resolutions(s)}
	d := &drawing{}
	for _, sample := range s.Samples {
		d.seconds = append(d.seconds, sample.Seconds)
	}
	height := panelTop + panelPitch*len(panels) - 14
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#222">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, height)
	d.text(16, 28, `font-size="16" font-weight="bold"`, "A conflict storm: two shards are merged while unique values move between them")
	d.text(16, 48, `fill="#666"`, "%d clients hand %d values around for %.0f s (shaded); a transaction of %d rows every few seconds makes one stream lag; seed %d",
		s.Clients, s.HotValues, s.StormEnd-s.StormBegin, s.BulkRows, s.Seed)
	for i, p := range panels {
		d.panel(panelTop+i*panelPitch, p, s.StormBegin, s.StormEnd)
	}
	d.text(plotLeft, height-8, `fill="#666" font-size="12"`, "seconds since the rows of the start were there")
	d.WriteString("</svg>\n")
	return d.String()
}

// load is what the clients sent.
func load(s demo.Samples) panel {
	values := perSecond(s, func(sample demo.Sample) float64 { return float64(sample.Statements) })
	return panel{"Statements a second, all clients", []series{{"sent", values}}}
}

// lag is how far each stream was behind.
func lag(s demo.Samples) panel {
	p := panel{title: "Lag in seconds: the age of what a stream last applied, at worst in each second"}
	shards := make(map[string]bool)
	for _, sample := range s.Samples {
		for shard := range sample.Lag {
			shards[shard] = true
		}
	}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		line := series{name: "stream of " + shard}
		for _, sample := range s.Samples {
			if value, known := sample.Lag[shard]; known {
				line.values = append(line.values, value)
			} else {
				line.values = append(line.values, math.NaN())
			}
		}
		p.series = append(p.series, line)
	}
	return p
}

// conflicts is how many were met.
func conflicts(s demo.Samples) panel {
	values := perSecond(s, func(sample demo.Sample) float64 { return float64(sample.Conflicts) })
	return panel{"Conflicts met a second, both streams", []series{{"met", values}}}
}

// resolutions is what ended them.
func resolutions(s demo.Samples) panel {
	p := panel{title: "Resolutions a second, by rung"}
	last := s.Samples[len(s.Samples)-1].Resolved
	names := slices.SortedFunc(maps.Keys(last), func(a, b string) int {
		return cmp.Or(int(last[b]-last[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		if last[name] == 0 {
			continue
		}
		values := perSecond(s, func(sample demo.Sample) float64 { return float64(sample.Resolved[name]) })
		p.series = append(p.series, series{fmt.Sprintf("%s (%d in all)", name, last[name]), values})
	}
	return p
}

// perSecond is the rate at which a counter grew up to each sample.
func perSecond(s demo.Samples, counter func(demo.Sample) float64) []float64 {
	rates := []float64{0}
	for i, sample := range s.Samples[1:] {
		before := s.Samples[i]
		rates = append(rates, max(0, counter(sample)-counter(before))/max(0.001, sample.Seconds-before.Seconds))
	}
	return rates
}

// panel draws one panel.
func (d *drawing) panel(top int, p panel, begin, end float64) {
	most := 0.0
	for _, line := range p.series {
		for _, value := range line.values {
			if !math.IsNaN(value) {
				most = max(most, value)
			}
		}
	}
	step := tick(most / 3)
	most = max(step, math.Ceil(most/step)*step)
	bottom := top + panelHeight
	y := func(value float64) float64 { return float64(bottom) - value/most*panelHeight }

	d.text(16, top-12, `font-weight="bold"`, "%s", p.title)
	if end > begin {
		fmt.Fprintf(d, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f3f0e6"/>`+"\n", d.x(begin), top, d.x(end)-d.x(begin), panelHeight)
	}
	for value := 0.0; value <= most; value += step {
		fmt.Fprintf(d, `<path d="M%d %.1fH%d" stroke="#ddd"/>`+"\n", plotLeft, y(value), plotRight)
		d.text(plotLeft-8, int(y(value))+4, `text-anchor="end" fill="#666" font-size="12"`, "%g", value)
	}
	last := d.seconds[len(d.seconds)-1]
	for at := 0.0; at <= last; at += tick(last / 8) {
		d.text(int(d.x(at)), bottom+16, `text-anchor="middle" fill="#666" font-size="12"`, "%g", at)
	}
	for i, line := range p.series {
		colour := colours[i%len(colours)]
		fmt.Fprintf(d, `<path d="%s" fill="none" stroke="%s" stroke-width="1.8"/>`+"\n", d.path(line.values, y), colour)
		fmt.Fprintf(d, `<rect x="%d" y="%d" width="12" height="4" fill="%s"/>`+"\n", plotRight+14, top+10+20*i, colour)
		d.text(plotRight+32, top+16+20*i, `font-size="12"`, "%s", line.name)
	}
}

// path is the line through the values, broken where one is not known.
func (d *drawing) path(values []float64, y func(float64) float64) string {
	var b strings.Builder
	command := 'M'
	for i, value := range values {
		if math.IsNaN(value) {
			command = 'M'
			continue
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", command, d.x(d.seconds[i]), y(value))
		command = 'L'
	}
	return b.String()
}

// x is where a second lies.
func (d *drawing) x(second float64) float64 {
	last := d.seconds[len(d.seconds)-1]
	return plotLeft + second/last*(plotRight-plotLeft)
}

func (d *drawing) text(x, y int, style, format string, args ...any) {
	fmt.Fprintf(d, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, style, html.EscapeString(fmt.Sprintf(format, args...)))
}

// tick rounds a distance up to 1, 2 or 5 times a power of ten, at least 1.
func tick(distance float64) float64 {
	for unit := 1.0; ; unit *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if times*unit >= distance {
				return times * unit
			}
		}
	}
}
