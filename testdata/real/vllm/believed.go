package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// sum is what is counted of a run.
type sum struct {
	requests, exact  int
	live             int // requests whose belief came from events
	prompt, cached   int // tokens
	believed         int
	smaller, greater int // sums of the smaller and of the greater of believed and cached
}

func sumOf(all []*played) (s sum) {
	for _, p := range all {
		s.requests++
		if p.believed == p.cached {
			s.exact++
		}
		if p.decision.Live {
			s.live++
		}
		s.prompt += p.prompt
		s.cached += p.cached
		s.believed += p.believed
		s.smaller += min(p.believed, p.cached)
		s.greater += max(p.believed, p.cached)
	}
	return s
}

func (s *sum) hitRate() float64    { return float64(s.cached) / float64(max(1, s.prompt)) }
func (s *sum) exactShare() float64 { return float64(s.exact) / float64(max(1, s.requests)) }
func (s *sum) agreement() float64  { return float64(s.smaller) / float64(max(1, s.greater)) }

func (s *sum) String() string {
	text := fmt.Sprintf("%d requests, %d tokens: engines cached %.1f %%, believed %.1f %%; agreement %.1f %%, "+
		"to the token in %.1f %% of the requests", s.requests, s.prompt, 100*s.hitRate(),
		100*float64(s.believed)/float64(max(1, s.prompt)), 100*s.agreement(), 100*s.exactShare())
	if s.live > 0 {
		text += fmt.Sprintf("; %d by events", s.live)
	}
	return text
}

// exactEnough is the share of requests in which a router that follows events must believe what the engine then finds.
const exactEnough = .99

// checkBelieved compares the tokens that the router believes to be cached at the worker that it chose with the engine's
// cached_tokens, request by request: chats in turns, plain and streamed.
func (g *stage) checkBelieved(ctx context.Context) error {
	failed := 0
	for _, stream := range []bool{false, true} {
		var first []*played
		for _, strategy := range g.strategies {
			name := strategy + map[bool]string{false: "", true: ", streamed"}[stream]
			all, err := g.play(ctx, &situation{}, strategy, stream)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s := sumOf(all)
			figure := s.String()
			if first == nil {
				first = all
			} else {
				figure += fmt.Sprintf("; the same prompts as with %s in %d", g.strategies[0], samePrompts(first, all))
			}
			word := "ok"
			excuses, unexplained := g.misses(ctx, all)
			if follows(strategy) && (s.exactShare() < exactEnough || unexplained > 0) {
				word = "FAIL"
				failed++
			}
			fmt.Printf("%-5s %-15s %s\n", word, name, figure)
			for _, e := range excuses {
				fmt.Println("      " + e)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("believed tokens: %d of 2 runs failed", failed)
	}
	return nil
}

// samePrompts counts the requests whose messages are alike in two runs. Answers may differ, as an engine sums floats in
// another order when it has less of a prompt cached.
func samePrompts(a, b []*played) (n int) {
	for i := range a {
		if fmt.Sprint(a[i].messages) == fmt.Sprint(b[i].messages) {
			n++
		}
	}
	return n
}

// maxExcuses bounds the misses that are printed.
const maxExcuses = 12

// misses looks at every request in which the engine found something else than the router believed. For a strategy that
// follows events it returns a line each, and counts those that late events do not explain. Of the others it says only
// how often the events, had they come in time, would have been right.
func (g *stage) misses(ctx context.Context, all []*played) (lines []string, unexplained int) {
	right := 0
	for i, p := range all {
		ids, err := g.workers[0].ids(ctx, p.messages)
		if err != nil {
			return []string{err.Error()}, 1
		}
		made := g.madeBefore(p)
		events := heldAfter(made, ids)
		if events == p.cached {
			right++
		}
		if !follows(p.decision.Strategy) || p.believed == p.cached {
			continue
		}
		line, explained := excuse(p, ids, made, events)
		if !explained {
			unexplained++
		}
		if len(lines) < maxExcuses {
			lines = append(lines, fmt.Sprintf("request %d at %s: believed %d, cached %d of %d: %s", i, p.worker, p.believed,
				p.cached, p.prompt, line))
		}
	}
	lines = append(lines, fmt.Sprintf("an index of all events made before each request gives the engine's figure in %d "+
		"of %d", right, len(all)))
	return lines, unexplained
}

// madeBefore returns the batches that the worker had made when a request was sent.
func (g *stage) madeBefore(p *played) []*batch {
	all := g.listener.of(p.worker)
	n := slices.IndexFunc(all, func(b *batch) bool { return b.Made > seconds(p.sent) })
	if n < 0 {
		return all
	}
	return all[:n]
}

// seconds returns a time as the engines write it.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// lateAtMost bounds what is put down to lateness. A busy machine was seen to hold events back for 200 ms.
const lateAtMost = 1.0

// excuse returns a line on a miss. A miss is explained if the router's belief is what the events give without some late
// ones.
func excuse(p *played, ids []uint32, made []*batch, events int) (line string, explained bool) {
	switch {
	case !p.decision.InTokens:
		return "routed by its text, as its ids were not known in time", false
	case !p.decision.Live:
		return "the worker's events were not live", false
	}
	if events != p.cached {
		return fmt.Sprintf("all events made before it give %d", events), false
	}
	for lacking := 1; lacking <= min(50, len(made)); lacking++ {
		if heldAfter(made[:len(made)-lacking], ids) == p.believed {
			first := made[len(made)-lacking]
			age := seconds(p.sent) - first.Made
			return fmt.Sprintf("the router lacked %d batches; the first was made %.0f ms before the request, and took %.0f ms "+
				"to come here", lacking, 1e3*age, 1e3*(first.Came-first.Made)), age < lateAtMost
		}
	}
	return "no lateness explains it", false
}
