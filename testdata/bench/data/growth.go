package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// growth is a size of the daemon's surroundings: CPU a request of 1 KB is measured in each.
type growth struct{ workers, pools, conns int }

// growths differ from the first in one number each. 9,000 connections are what a limit of 20,000 files lets through.
var growths = []growth{{4, 1, 32}, {64, 1, 32}, {256, 1, 32}, {4, 16, 32}, {4, 1, 10}, {4, 1, 1000}, {4, 1, 9000}}

// printGrowth measures how the CPU of a request grows with workers, pools and connections, and prints a figure each.
// There are no marks: it is a table for who runs many.
func (b *bench) printGrowth() error {
	workers, err := plainWorkers(256)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, g := range growths {
		p, err := g.router(workers).Start(b.dir, b.bin["warmpath"])
		if err != nil {
			return err
		}
		name := fmt.Sprintf("growth/%d workers, %d pools, %d connections", g.workers, g.pools, g.conns)
		err = b.grown(p, name, g.conns)
		p.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w; its log ends %q", name, err, p.Log(300))
		}
		f := figure{Name: name, Unit: "us/request"}
		f.judge(b.samples[[2]string{name, p.Name}], true)
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// grown measures five turns. The requests go over the connections in turn.
func (b *bench) grown(p *rig.Proc, name string, conns int) error {
	drivers := min(busy, conns)
	clients, next := make([][]*wire.Client, drivers), make([]func() []byte, drivers)
	request := sized(1<<10, chatPath, false)
	var all sync.WaitGroup
	errs := make([]error, drivers)
	for i := range drivers {
		next[i] = renew(request)
		for n := i; n < conns; n += drivers {
			clients[i] = append(clients[i], &wire.Client{Addr: p.Addr})
		}
		all.Go(func() { // each connection is open before the first turn
			for _, c := range clients[i] {
				errs[i] = ask(c, next[i]())
				if errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	defer func() {
		for _, mine := range clients {
			for _, c := range mine {
				c.Close()
			}
		}
	}()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	turn := make([]int, drivers)
	for range 5 {
		v, err := b.perRequest(p, drivers, func(_ *wire.Client, i int) (int, error) {
			turn[i]++
			return 1, ask(clients[i][turn[i]%len(clients[i])], next[i]())
		})
		if err != nil {
			return err
		}
		b.note(name, p.Name, v)
	}
	return nil
}

// router is the daemon of that size. The pool that serves comes last.
func (g growth) router(workers []string) rig.Router {
	var others strings.Builder
	for i := 1; i < g.pools; i++ {
		model := fmt.Sprint("other-", i)
		if i == g.pools-1 {
			model = "sim"
		}
		fmt.Fprintf(&others, "[[pools]]\nname = \"p%d\"\nmodels = [%q]\n%s", i, model,
			rig.Tables("pools.workers", workers[i*g.workers:(i+1)*g.workers]))
	}
	first := "sim"
	if g.pools > 1 {
		first = "other-0"
	}
	return rig.Router{Pool: fmt.Sprintf("models = [%q]", first), Workers: workers[:g.workers],
		Strategies: others.String()}
}

// plainWorkers starts n workers in this process, whose CPU is not measured, and returns their addresses.
func plainWorkers(n int) (addrs []string, err error) {
	for range n {
		addr := rig.FreeAddr()
		w := wire.Worker{Handle: func(c *wire.Call) bool { return c.Answer() }}
		if err := w.Start(addr); err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
