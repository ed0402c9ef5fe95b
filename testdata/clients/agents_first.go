package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"
)

// firstTurn is how often each agent answers one turn, in turns with and without the router. No test judges a time:
// machines are noisy.
var firstTurn = flag.Int("first-turn", 0, "do nothing but this: so many times, let each coding agent do one turn at a "+
	"worker and one through the router, and print how much longer the second one took")

// firstTurns prints the median of each agent's wall times, its start included: what it asks first, as Codex does by
// WebSocket, comes before its turn.
func firstTurns(ctx context.Context, main *fleet) error {
	if err := installAgents(ctx, main.root); err != nil {
		return err
	}
	direct, router := *main, *main
	direct.url = main.workers[0]
	for i := range agents {
		a := &agents[i]
		if a.probes > 0 {
			continue // at a worker it tries its WebSocket again and again
		}
		var took [2][]time.Duration
		for range *firstTurn {
			for k, f := range []*fleet{&direct, &router} {
				began := time.Now()
				if err := a.goesOn(ctx, f); err != nil {
					return fmt.Errorf("agent %s: %w", a.name, err)
				}
				took[k] = append(took[k], time.Since(began))
			}
		}
		var over []time.Duration
		for n := range took[0] {
			over = append(over, took[1][n]-took[0][n])
		}
		fmt.Printf("agent %s: a worker %v, the router %v, median of the differences %v\n", a.name, middle(took[0]),
			middle(took[1]), middle(over))
	}
	return nil
}

// middle returns the median, which it finds by sorting the list.
func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2].Round(time.Millisecond)
}
