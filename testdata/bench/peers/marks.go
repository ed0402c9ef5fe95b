package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// counted is how many requests of the restarted router are looked at, before and after.
const counted = 200

// enough is how many requests a fault takes: as many before it as after it.
func enough(o *options, routers int) int {
	if o.fault == "redis" || o.fault == "none" {
		const after = stopped + 4*settles
		return int(2 * after.Seconds() * o.speed * tenantsRate)
	}
	return 4 * counted * routers // twice as many before it: the first ones meet empty caches
}

// own returns what one router was asked.
func own(all []outcome, router int) []outcome {
	return slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.router != router })
}

func first(all []outcome) []outcome { return all[:min(len(all), counted)] }
func last(all []outcome) []outcome  { return all[max(0, len(all)-counted):] }

// mark is what the routers must reach.
type mark struct {
	name        string
	got, want   float64
	atMost, few bool // few: too little was measured
}

func (m *mark) pass() bool {
	switch {
	case m.few:
		return false
	case m.atMost:
		return m.got <= m.want
	}
	return m.got >= m.want
}

// keptRate is the mark of a router that was started anew: the hit rate of its next requests, of those before.
func keptRate(parts []map[string]any) mark {
	before, after := parts[0], parts[1]
	m := mark{name: "hit rate of the restarted router's next 200 over that of its 200 before", want: .9,
		few: before["requests"].(int) < counted || after["requests"].(int) < counted}
	m.got = rate(after) / max(rate(before), 1e-9)
	return m
}

// backAgain is the marks of the time that begins 5 s after Redis was back.
func backAgain(parts []map[string]any) []mark {
	before, rest := parts[0], parts[3]
	few := rest["requests"].(int) < counted
	mean := func(f map[string]any) float64 { v, _ := f["mean_ttft"].(float64); return v }
	return []mark{
		{name: "hit rate from 5 s after, less that of before", got: rate(rest) - rate(before), want: -.02, few: few},
		{name: "mean time to first token from 5 s after, over that of before", got: mean(rest) / max(mean(before), 1e-9),
			want: 1.1, atMost: true, few: few},
	}
}

func rate(f map[string]any) float64 { v, _ := f["hit_rate"].(float64); return v }

// maxWait is how much longer than the median of those before a knock may take.
const maxWait = 5 * time.Millisecond

// marks are those of the time without Redis: nothing fails, and nobody waits. A busy machine makes some knocks slow in
// any case: without Redis their share may be no greater than before, but for three standard errors.
func (k *knocks) marks(all []outcome) []mark {
	k.during.Lock()
	defer k.during.Unlock()
	failed := k.failed
	for _, o := range all {
		if o.failed != "" {
			failed++
		}
	}
	before, meanwhile := k.took[0], k.took[1]
	m := mark{name: "share of knocks that wait over 5 ms without Redis", atMost: true,
		few: len(before) < counted || len(meanwhile) < counted}
	if !m.few {
		limit := before[len(before)/2] + maxWait // report has sorted them
		p := over(before, limit)
		m.got, m.want = over(meanwhile, limit), p+3*math.Sqrt(p/float64(len(before))+p/float64(len(meanwhile)))
	}
	return []mark{{name: "requests that failed", got: float64(failed), atMost: true}, m}
}

func over(sorted []time.Duration, limit time.Duration) float64 {
	i, _ := slices.BinarySearch(sorted, limit+1)
	return float64(len(sorted)-i) / float64(len(sorted))
}

// judge prints each mark with whether it is reached. It returns an error if one is not.
func judge(o *options, all []mark) error {
	missed := 0
	for i := range all {
		m := &all[i]
		line := map[string]any{"fault": o.fault, "mark": m.name, "got": m.got, "pass": m.pass()}
		if m.atMost {
			line["at_most"] = m.want
		} else {
			line["at_least"] = m.want
		}
		if m.few {
			line["too_few_requests"] = true
		}
		if !m.pass() {
			missed++
		}
		if err := tell(line); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d marks of -fault %s are missed", missed, o.fault)
	}
	return nil
}
