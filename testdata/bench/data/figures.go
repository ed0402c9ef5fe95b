package main

import (
	"regexp"
	"slices"
)

// figure is one line of the output, as testdata/bench/json prints them.
type figure struct {
	Name    string   `json:"name"`
	Value   *float64 `json:"value"` // null if it is missing
	Unit    string   `json:"unit"`
	Target  *float64 `json:"target,omitempty"`
	OK      bool     `json:"ok"`
	Missing bool     `json:"missing,omitempty"`
}

// target is a figure's mark for the daemon.
type target struct {
	name, unit string
	limit      float64 // of the daemon's own value; < 0 = none
	ratio      float64 // at most so often the value of nginx; 0 = not told
	beats      float64 // ReverseProxy's value is at least so often ours; 0 = not told
	over       float64 // at most so much more than nginx; 0 = not told
}

// targets are those of the design for two cores, in the order of the output.
var targets = []target{
	{name: "cpu/1KB", unit: "us/request", limit: -1, ratio: 1.9, beats: 5},
	{name: "cpu/1KB-switches", unit: "switches/request", limit: .3},
	{name: "cpu/32KB", unit: "us/request", limit: -1, ratio: 2},
	{name: "cpu/256KB", unit: "us/request", limit: -1, ratio: 2},
	{name: "cpu/chat-8KB", unit: "us/request", limit: -1, ratio: 2.2},
	{name: "cpu/500-a-second", unit: "us/request", limit: -1, ratio: 1.6},
	{name: "cpu/1500-a-second", unit: "us/request", limit: -1, ratio: 1.9},
	{name: "latency/500-p50", unit: "us", limit: -1, over: 60},
	{name: "latency/500-p99", unit: "us", limit: -1},
	{name: "latency/added-p50", unit: "us", limit: 150, over: 80},
	{name: "latency/added-p99", unit: "us", limit: 1000},
	{name: "sse/cpu", unit: "us/chunk", limit: -1, ratio: 1},
	{name: "sse/paced-cpu", unit: "us/chunk", limit: -1, ratio: 1.1},
	{name: "sse/added-p50", unit: "us", limit: 100},
	{name: "sse/added-p99", unit: "us", limit: 250},
	{name: "memory/1000-streams", unit: "KB/stream", limit: 12},
	{name: "memory/9000-streams", unit: "KB/stream", limit: 12},
	{name: "memory/9000-total", unit: "MB", limit: 270},
	{name: "memory/9000-errors", unit: "streams", limit: 0},
	{name: "memory/idle-connection", unit: "KB/connection", limit: 4},
	{name: "gone/prefill-p50", unit: "ms", limit: 5},
	{name: "gone/prefill-p99", unit: "ms", limit: 5},
	{name: "gone/prefill-max", unit: "ms", limit: -1},
	{name: "gone/stream-p50", unit: "ms", limit: 5},
	{name: "gone/stream-p99", unit: "ms", limit: 5},
	{name: "gone/stream-max", unit: "ms", limit: -1},
}

// figures judges what was measured of the measures wanted.
func (b *bench) figures(want *regexp.Regexp) (all []figure) {
	for _, t := range targets {
		if !want.MatchString(t.name) {
			continue
		}
		for _, proxy := range b.names() {
			f := figure{Name: t.name + "/" + proxy, Unit: t.unit}
			if proxy == "warmpath" && t.limit >= 0 {
				f.Target = &t.limit
			}
			f.judge(b.samples[[2]string{t.name, proxy}], true)
			all = append(all, f)
		}
		if b.compare {
			f := figure{Name: t.name + "/warmpath over beside", Unit: "ratio", Target: new(1.03)}
			f.judge(b.ratios(t.name, "warmpath", "beside"), true)
			all = append(all, f)
			continue
		}
		if t.ratio > 0 {
			f := figure{Name: t.name + "/warmpath over nginx", Unit: "ratio", Target: &t.ratio}
			f.judge(b.ratios(t.name, "warmpath", "nginx"), true)
			all = append(all, f)
		}
		if t.over > 0 {
			f := figure{Name: t.name + "/warmpath less nginx", Unit: t.unit, Target: &t.over}
			f.judge(b.paired(t.name, "warmpath", "nginx", func(x, y float64) float64 { return x - y }), true)
			all = append(all, f)
		}
		if t.beats > 0 {
			f := figure{Name: t.name + "/reverseproxy over warmpath", Unit: "ratio", Target: &t.beats}
			f.judge(b.ratios(t.name, "reverseproxy", "warmpath"), false)
			all = append(all, f)
		}
	}
	return all
}

// ratios divides round by round.
func (b *bench) ratios(name, over, under string) []float64 {
	return b.paired(name, over, under, func(x, y float64) float64 { return x / y })
}

// paired compares two contenders round by round.
func (b *bench) paired(name, one, other string, compare func(x, y float64) float64) (r []float64) {
	x, y := b.samples[[2]string{name, one}], b.samples[[2]string{name, other}]
	for i := range min(len(x), len(y)) {
		r = append(r, compare(x[i], y[i]))
	}
	return r
}

// judge takes the median.
func (f *figure) judge(samples []float64, atMost bool) {
	if len(samples) == 0 {
		f.Missing = true
		return
	}
	v := slices.Sorted(slices.Values(samples))[len(samples)/2]
	f.Value = &v
	f.OK = f.Target == nil || atMost && v <= *f.Target || !atMost && v >= *f.Target
}
