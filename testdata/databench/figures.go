package main

import (
	"regexp"
	"slices"
)

// figure is one line of the output, as testdata/benchjson prints them.
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
}

// targets are those of the design for two cores, in the order of the output.
var targets = []target{
	{"cpu/1KB", "us/request", -1, 1.6, 5},
	{"cpu/32KB", "us/request", -1, 2, 0},
	{"cpu/256KB", "us/request", -1, 3, 0},
	{"cpu/chat-8KB", "us/request", -1, 2, 0},
	{"latency/added-p50", "us", 150, 0, 0},
	{"latency/added-p99", "us", 1000, 0, 0},
	{"sse/cpu", "us/chunk", 0.7, 0, 0},
	{"sse/added-p50", "us", 100, 0, 0},
	{"sse/added-p99", "us", 250, 0, 0},
	{"memory/1000-streams", "KB/stream", 24, 0, 0},
	{"memory/9000-streams", "KB/stream", 24, 0, 0},
	{"memory/9000-total", "MB", 270, 0, 0},
	{"memory/9000-errors", "streams", 0, 0, 0},
	{"gone/prefill-p50", "ms", 5, 0, 0},
	{"gone/prefill-p99", "ms", 5, 0, 0},
	{"gone/prefill-max", "ms", -1, 0, 0},
	{"gone/stream-p50", "ms", 5, 0, 0},
	{"gone/stream-p99", "ms", 5, 0, 0},
	{"gone/stream-max", "ms", -1, 0, 0},
}

// figures judges what was measured of the measures wanted.
func (b *bench) figures(want *regexp.Regexp) (all []figure) {
	for _, t := range targets {
		if !want.MatchString(t.name) {
			continue
		}
		for _, proxy := range proxyNames {
			f := figure{Name: t.name + "/" + proxy, Unit: t.unit}
			if proxy == "warmpath" && t.limit >= 0 {
				f.Target = &t.limit
			}
			f.judge(b.samples[[2]string{t.name, proxy}], true)
			all = append(all, f)
		}
		if t.ratio > 0 {
			f := figure{Name: t.name + "/warmpath over nginx", Unit: "ratio", Target: &t.ratio}
			f.judge(b.ratios(t.name, "warmpath", "nginx"), true)
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
func (b *bench) ratios(name, over, under string) (r []float64) {
	x, y := b.samples[[2]string{name, over}], b.samples[[2]string{name, under}]
	for i := range min(len(x), len(y)) {
		r = append(r, x[i]/y[i])
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
