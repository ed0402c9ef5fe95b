package replay

import (
	"fmt"
	"strconv"
)

// textRows are the lines of the table, top to bottom.
var textRows = []struct {
	name  string
	value func(*Result) string
}{
	{"model", func(r *Result) string { return r.Model }},
	{"requests answered", func(r *Result) string { return fmt.Sprintf("%d of %d", r.Answered, r.Requests) }},
	{"block hit rate", func(r *Result) string { return rate(r.BlockHitRate, r.PromptBlocks) }},
	{"token hit rate", func(r *Result) string { return rate(r.TokenHitRate, r.PromptTokens) }},
	{"TTFT mean, s", func(r *Result) string { return seconds(r.TTFT, r.TTFT.Mean) }},
	{"TTFT p50, s", func(r *Result) string { return seconds(r.TTFT, r.TTFT.P50) }},
	{"TTFT p90, s", func(r *Result) string { return seconds(r.TTFT, r.TTFT.P90) }},
	{"TTFT p99, s", func(r *Result) string { return seconds(r.TTFT, r.TTFT.P99) }},
	{"answer p50, s", func(r *Result) string { return seconds(r.Total, r.Total.P50) }},
	{"answer p90, s", func(r *Result) string { return seconds(r.Total, r.Total.P90) }},
	{"work, busiest over mean", func(r *Result) string { return over(r.WorkBusiestOverMean) }},
	{"requests, busiest over mean", func(r *Result) string { return over(r.RequestsBusiestOverMean) }},
	{"workers that answered", func(r *Result) string { return strconv.Itoa(r.Workers) }},
	{"most in flight", func(r *Result) string { return strconv.Itoa(r.PeakInFlight) }},
	{"latest left late by, s", func(r *Result) string { return fmt.Sprintf("%.2f", r.LateSecondsMax) }},
	{"speed", func(r *Result) string { return strconv.FormatFloat(r.Speed, 'g', -1, 64) }},
	{"wall time, s", func(r *Result) string { return fmt.Sprintf("%.1f", r.WallSeconds) }},
}

func rate(v float64, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}

// seconds shows milliseconds below ten seconds, where they mean something.
func seconds(d Distribution, v float64) string {
	switch {
	case d.Count == 0:
		return "-"
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	default:
		return fmt.Sprintf("%.1f", v)
	}
}

func over(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}
