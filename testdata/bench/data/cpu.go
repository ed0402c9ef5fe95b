package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// measureOf is one thing to measure, proxy by proxy in rounds.
type measureOf struct {
	name   string
	rounds int
	round  func(*bench) error // before the proxies' turns; may be nil
	proxy  func(*bench, *rig.Proc) error
}

var measures = []measureOf{
	{name: "cpu/1KB cpu/1KB-switches", rounds: 7, proxy: cpuOf("cpu/1KB", 1<<10)},
	{name: "cpu/32KB", rounds: 5, proxy: cpuOf("cpu/32KB", 32<<10)},
	{name: "cpu/256KB", rounds: 5, proxy: cpuOf("cpu/256KB", 256<<10)},
	{name: "cpu/chat-8KB", rounds: 5, proxy: cpuOfChats},
	{name: "latency/added-p50 latency/added-p99 cpu/1500-a-second", rounds: 5, round: directLatency(half),
		proxy: addedLatency(half)},
	{name: "latency/500-p50 latency/500-p99 cpu/500-a-second", rounds: 5, round: directLatency(low),
		proxy: addedLatency(low)},
	{name: "sse/cpu", rounds: 5, proxy: cpuOfChunks},
	{name: "sse/added-p50 sse/added-p99 sse/paced-cpu", rounds: 5, round: directChunks, proxy: addedChunks},
	{name: "memory/1000-streams memory/9000-streams memory/9000-total memory/9000-errors", rounds: 1,
		proxy: memory},
	{name: "memory/idle-connection", rounds: 1, proxy: idleConnections},
	{name: "gone/prefill-p50 gone/prefill-p99 gone/prefill-max", rounds: 2, proxy: gone("prefill")},
	{name: "gone/stream-p50 gone/stream-p99 gone/stream-max", rounds: 2, proxy: gone("stream")},
}

// busy is the number of connections that keep a proxy busy: enough that it is never idle, as on a loaded machine.
const busy = 32

func (b *bench) turn() time.Duration {
	if b.quick {
		return 250 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// perRequest runs the closed loop twice, first unmeasured, and returns the proxy's CPU time in us a unit of work. shoot
// returns how much work it was.
func (b *bench) perRequest(p *rig.Proc, conns int, shoot func(c *wire.Client, i int) (int, error)) (float64, error) {
	var work atomic.Int64
	var failed atomic.Pointer[error]
	each := func(c *wire.Client, i int) {
		n, err := shoot(c, i)
		work.Add(int64(n))
		if err != nil {
			failed.Store(&err)
			time.Sleep(time.Millisecond)
		}
	}
	wire.Closed(b.ctx, p.Addr, conns, b.turn()/4, each)
	work.Store(0)
	before := p.CPU()
	switches := p.Switches()
	wire.Closed(b.ctx, p.Addr, conns, b.turn(), each)
	used := p.CPU() - before
	switches = p.Switches() - switches
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	if work.Load() == 0 {
		return 0, errors.New("no request was answered")
	}
	b.switches = float64(switches) / float64(work.Load())
	return float64(used.Nanoseconds()) / 1e3 / float64(work.Load()), nil
}

// ask sends a request and wants a whole 200.
func ask(c *wire.Client, request []byte) error {
	a := c.Do(request, false)
	if a.Err == nil && a.Status != 200 {
		return fmt.Errorf("status %d", a.Status)
	}
	return a.Err
}

func cpuOf(name string, size int) func(*bench, *rig.Proc) error {
	request := sized(size, chatPath, false)
	return func(b *bench, p *rig.Proc) error {
		next := make([]func() []byte, busy)
		for i := range next {
			next[i] = renew(request)
		}
		v, err := b.perRequest(p, busy, func(c *wire.Client, i int) (int, error) { return 1, ask(c, next[i]()) })
		if err == nil && size == 1<<10 {
			b.note(name+"-switches", p.Name, b.switches)
		}
		return b.noteUnless(err, name, p.Name, v)
	}
}

// cpuOfChats plays conversations, each on a connection of its own, turn by turn.
func cpuOfChats(b *bench, p *rig.Proc) error {
	left := make([][][]byte, busy)
	v, err := b.perRequest(p, busy, func(c *wire.Client, i int) (int, error) {
		if len(left[i]) == 0 {
			left[i] = turns()
		}
		err := ask(c, left[i][0])
		left[i] = left[i][1:]
		return 1, err
	})
	return b.noteUnless(err, "cpu/chat-8KB", p.Name, v)
}

// cpuOfChunks has four workers' streams as fast as they go. Proxies may join chunks: the worker's own count.
func cpuOfChunks(b *bench, p *rig.Proc) error {
	const conns, chunks = 4, 2000
	request := sized(1<<10, fmt.Sprintf("%s?chunks=%d", chatPath, chunks), true)
	v, err := b.perRequest(p, conns, func(c *wire.Client, _ int) (int, error) { return chunks + 1, ask(c, request) })
	return b.noteUnless(err, "sse/cpu", p.Name, v)
}
