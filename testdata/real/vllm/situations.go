package main

import (
	"context"
	"fmt"
	"strings"
)

// situation is what the router's own history may be wrong in.
type situation struct {
	name     string
	wins     bool // a strategy that follows events must find more
	routers  int  // 0 = one
	kvTokens int  // in the router's configuration
	past     func(*turn) bool

	// midway is called after half of the requests; nil = nothing happens then.
	midway func(ctx context.Context, g *stage, p *player, strategy string) error
	// simulated is the same in virtual time.
	simulated func(g *simulation) error
}

var situations = []situation{
	{name: "nothing happens"},
	{name: "the router is restarted", wins: true, midway: restartRouter, simulated: (*simulation).restart},
	{name: "two routers", wins: true, routers: 2},
	{name: "kv_tokens half of the truth", wins: true, kvTokens: smallBlocks * 32 / 2},
	{name: "kv_tokens twice the truth", kvTokens: smallBlocks * 32 * 2},
	{name: "reset_prefix_cache at one worker", wins: true, midway: resetWorker,
		simulated: (*simulation).reset},
	{name: "a third of the requests goes past the router", wins: true, past: func(t *turn) bool { return t.astray }},
	{name: "a third of the chats goes past the router", wins: true, past: func(t *turn) bool { return t.foreign }},
}

func restartRouter(ctx context.Context, g *stage, p *player, strategy string) error {
	p.routers[0].kill()
	r, err := g.serve(ctx, 0, strategy, 0)
	if err == nil {
		p.routers[0] = r
	}
	return err
}

func resetWorker(ctx context.Context, g *stage, _ *player, _ string) error {
	return g.workers[0].reset(ctx)
}

// checkSituations prints a table of what each strategy reaches in each situation: the same requests, plain, on the same
// engines, emptied before. Of several seeds there is a table for each, and then one of the means.
func (g *stage) checkSituations(ctx context.Context) error {
	results := make([]result, len(situations))
	for k := range g.seeds {
		g.traffic = drawTraffic(g.seed+uint64(k), g.requests)
		fmt.Printf("\nseed %d\n\n%s\n", g.seed+uint64(k), tableHead(g.strategies))
		for i := range situations {
			s := &situations[i]
			var sums []sum
			for _, strategy := range g.strategies {
				all, err := g.play(ctx, s, strategy, false)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, strategy, err)
				}
				sums = append(sums, sumOf(routed(all)))
			}
			fmt.Println(tableRow(s.name, sums))
			results[i] = append(results[i], sums)
		}
	}
	return conclude(g.strategies, results)
}

func tableHead(strategies []string) string {
	head, line := "| 100 x tokens cached / tokens of the prompts |", "|---|"
	for _, s := range strategies {
		head += " " + s + " |"
		line += "---|"
	}
	if len(strategies) == 2 {
		head += " gain, points |"
		line += "---|"
	}
	for _, s := range strategies {
		head += " " + s + ": believed to the token, % of requests; agreement of tokens, % |"
		line += "---|"
	}
	return head + "\n" + line
}

func tableRow(name string, sums []sum) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", name)
	for _, s := range sums {
		fmt.Fprintf(&b, " %.1f |", 100*s.hitRate())
	}
	if len(sums) == 2 {
		fmt.Fprintf(&b, " %+.1f |", 100*(sums[1].hitRate()-sums[0].hitRate()))
	}
	for _, s := range sums {
		fmt.Fprintf(&b, " %.1f; %.1f |", 100*s.exactShare(), 100*s.agreement())
	}
	return b.String()
}
