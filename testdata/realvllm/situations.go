package main

import (
	"context"
	"errors"
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
}

var situations = []situation{
	{name: "nothing happens"},
	{name: "the router is restarted", wins: true, midway: restartRouter},
	{name: "two routers", wins: true, routers: 2},
	{name: "kv_tokens half of the truth", wins: true, kvTokens: smallBlocks * 32 / 2},
	{name: "kv_tokens twice the truth", kvTokens: smallBlocks * 32 * 2},
	{name: "reset_prefix_cache at one worker", wins: true, midway: resetWorker},
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
// engines, emptied before.
func (g *stage) checkSituations(ctx context.Context) error {
	fmt.Println("\n" + tableHead(g.strategies))
	var lost error
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
		if n := len(sums) - 1; s.wins && follows(g.strategies[n]) && n > 0 && sums[n].hitRate() <= sums[0].hitRate() {
			lost = errors.Join(lost, fmt.Errorf("%s: %s finds no more than %s", s.name, g.strategies[n], g.strategies[0]))
		}
	}
	return lost
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
