package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// queueTest plays a scenario of a queue over HTTP to a daemon with the queue, at the same time its first class alone to
// one that has nothing else to do, and then to a daemon without the queue. That is for half of the time: what piles up
// at its workers would need more open files than a process may have.
type queueTest struct {
	scenario string
	seed     uint64
}

// keyLine is what the requests of one key saw.
type keyLine struct {
	Scenario string  `json:"scenario"`
	At       string  `json:"at"` // queue, alone or none
	Seconds  float64 `json:"seconds"`
	Key      string  `json:"key"`
	Answered int     `json:"answered"`
	Refused  int     `json:"refused"`
	GaveUp   int     `json:"gave_up"`        // their clients, after five minutes
	InTime   int     `json:"in_two_seconds"` // first tokens
	P90      float64 `json:"ttft_p90"`
	Hits     float64 `json:"hit_rate"`
	Computed int     `json:"computed_tokens"` // of the prompts
}

// run prints a line for each key and daemon.
func (t *queueTest) run(ctx context.Context) error {
	sc, err := setup.Read(t.scenario)
	if err != nil {
		return err
	}
	first, half := *sc, *sc
	first.Classes = sc.Classes[:1]
	half.Seconds /= 2
	q, room := &sc.Queue, &sc.Room
	queued := fmt.Sprintf("max_wait_seconds = %g\nqueue = { max_requests = %d, max_bytes = %d, wait = %q, starve = %q }\n",
		room.MaxWait, q.MaxRequests, q.MaxBytes, q.Wait, q.Starve)
	if err := t.runBeside(ctx, queuePlay{name: "queue", sc: sc, pool: queued},
		queuePlay{name: "alone", sc: &first}); err != nil {
		return err
	}
	return t.runBeside(ctx, queuePlay{name: "none", sc: &half})
}

// queuePlay is a daemon, and the load that it gets.
type queuePlay struct {
	name string
	sc   *setup.Scenario
	pool string // further lines of [[pools]]
}

// runBeside plays several at the same time and prints their lines.
func (t *queueTest) runBeside(ctx context.Context, plays ...queuePlay) error {
	dir, err := os.MkdirTemp("", "labcheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	seen, errs := make([]*keys, len(plays)), make([]error, len(plays))
	var all sync.WaitGroup
	for i, p := range plays {
		all.Go(func() { seen[i], errs[i] = t.play(ctx, dir, p.sc, p.pool) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, p := range plays {
		if err := t.print(&p, seen[i]); err != nil {
			return err
		}
	}
	return nil
}

// print writes the lines of one daemon.
func (t *queueTest) print(p *queuePlay, k *keys) error {
	out := json.NewEncoder(os.Stdout)
	for _, name := range slices.Sorted(maps.Keys(k.seen)) {
		s := k.seen[name]
		l := keyLine{Scenario: t.scenario, At: p.name, Key: name, Seconds: p.sc.Seconds, Answered: len(s.ttft),
			Refused: k.away[name], GaveUp: k.late[name], P90: s.side().P90, Hits: s.side().Hits, Computed: s.prompt - s.cached}
		for _, first := range s.ttft {
			if first <= 2 {
				l.InTime++
			}
		}
		if err := out.Encode(&l); err != nil {
			return err
		}
	}
	return nil
}

// play sends the load of a scenario to a daemon of its own.
func (t *queueTest) play(ctx context.Context, dir string, sc *setup.Scenario, pool string) (*keys, error) {
	load, err := sc.Load(t.seed)
	if err != nil {
		return nil, err
	}
	k, err := newKeys(dir, sc)
	if err != nil {
		return nil, err
	}
	at := site{rule: &rule{name: "prefixaware"}, workers: sc.Workers, pool: pool, keys: k,
		until: time.Duration(sc.Seconds) * time.Second,
		sim: vllmsim.Config{Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, MaxBatchedTokens: sc.Engine.MaxBatchedTokens,
			Model: sc.Engine.Config().Model}}
	return k, overHTTP(ctx, &sums{}, at, load)
}
