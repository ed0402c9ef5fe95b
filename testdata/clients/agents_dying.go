package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"time"
)

// dying is for how long the agents work while workers die.
var dying = flag.Duration("dying", 0, "run nothing but the coding agents, one session after the other for so long, "+
	"while every 20 s the worker dies that has most to do; as 2m")

const (
	diesEvery = 20 * time.Second
	deadFor   = 8 // seconds
)

// dyingChecks has all agents work at once in a pool whose streams other workers go on with. No session may end, and no
// agent may ask twice.
func dyingChecks(ctx context.Context, main *fleet, t *total) error {
	if err := installAgents(ctx, main.root); err != nil {
		return err
	}
	f, err := openAgents(ctx, main, "continue = 1\n")
	if err != nil {
		return err
	}
	defer f.close()
	ctx, stop := context.WithTimeout(ctx, *dying+patience)
	defer stop()
	end := time.Now().Add(*dying)
	sessions, failed := make([]int, len(agents)), make([]error, len(agents))
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() {
			for failed[i] == nil && time.Now().Before(end) {
				failed[i] = agents[i].goesOn(ctx, f)
				sessions[i]++
			}
		})
	}
	deaths, busy := 0, 0
	for time.Now().Before(end) {
		time.Sleep(diesEvery)
		u, n, err := f.busiest()
		if err == nil {
			err = fault(ctx, u, fmt.Sprintf(`{"mode":"die","seconds":%d}`, deadFor))
		}
		if err != nil {
			return err
		}
		deaths++
		busy += n
	}
	all.Wait()
	for i := range agents {
		what := fmt.Sprintf("%d sessions while a worker dies every %s", sessions[i], diesEvery)
		runChecks(ctx, "agent "+agents[i].name, t, []check{{what, func(context.Context) error { return failed[i] }}})
	}
	fmt.Printf("%d workers died, with %d requests in all\n", deaths, busy)
	lines, err := readLog(f.log())
	ends := map[string]int{}
	for _, l := range lines {
		ends[fmt.Sprint(l.End)]++
	}
	fmt.Println("requests by their end:", ends)
	return err
}

// busiest returns the worker that has most to do. It waits for one that has something, for 10 s at most.
func (h *fleet) busiest() (worker string, requests int, err error) {
	for tries := 0; requests == 0 && tries < 1000; tries++ {
		for _, u := range h.workers {
			s, e := statsOf(u)
			if e != nil {
				if strings.Contains(e.Error(), "refused") { // it is dead
					continue
				}
				err = errors.Join(err, e)
			}
			if worker == "" || s.Running > requests {
				worker, requests = u, s.Running
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return worker, requests, err
}
