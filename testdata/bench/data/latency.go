package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// direct stands for the worker without a proxy.
const direct = "direct"

// The open loops' rates, in requests a second: a daemon that is hardly busy, and one that is half so.
const (
	low  = 500
	half = 1500
)

// figureOf is how the latency figures of a rate begin.
func figureOf(rate float64) string {
	if rate == low {
		return "latency/500"
	}
	return "latency/added"
}

func directLatency(rate float64) func(*bench) error {
	return func(b *bench) error { return b.latency(b.worker, direct, rate) }
}

func addedLatency(rate float64) func(*bench, *rig.Proc) error {
	return func(b *bench, p *rig.Proc) error { return b.latency(p, p.Name, rate) }
}

// latency notes what p adds at the given rate: its quantiles less those of this round without a proxy. It notes the CPU
// of a request, too: at a low rate a process wakes up for each.
func (b *bench) latency(p *rig.Proc, name string, rate float64) error {
	const first = 100 // requests that pay for connections
	request := sized(1<<10, chatPath, false)
	var next sync.Pool
	next.New = func() any { return renew(request) }
	d := 2 * b.turn()
	total := int(rate * d.Seconds())
	took := make([]time.Duration, total)
	var n, failed, before atomic.Int64
	wire.Open(b.ctx, p.Addr, rate, 64, d, func(c *wire.Client, i int, due time.Time) {
		if i == first {
			before.Store(int64(p.CPU()))
		}
		f := next.Get().(func() []byte)
		if ask(c, f()) != nil {
			failed.Add(1)
		}
		next.Put(f)
		if i > first {
			took[n.Add(1)-1] = time.Since(due)
		}
	})
	used := int64(p.CPU()) - before.Load()
	if failed.Load() > 0 {
		return fmt.Errorf("%d requests failed", failed.Load())
	}
	if name != direct {
		b.note(fmt.Sprintf("cpu/%.0f-a-second", rate), name, float64(used)/1e3/float64(total-first))
	}
	b.noteAdded(figureOf(rate), name, took[:n.Load()])
	return nil
}

// noteAdded notes p50 and p99 in us; of a proxy, what it adds to the direct ones of the round.
func (b *bench) noteAdded(figure, name string, took []time.Duration) {
	for _, q := range []struct {
		suffix string
		q      float64
	}{{"-p50", .5}, {"-p99", .99}} {
		v := float64(wire.Quantile(took, q.q).Nanoseconds()) / 1e3
		if name != direct {
			v -= b.last(figure+q.suffix, direct)
		}
		b.note(figure+q.suffix, name, v)
	}
}

func directChunks(b *bench) error { return b.chunkLatency(b.worker, direct) }

func addedChunks(b *bench, p *rig.Proc) error { return b.chunkLatency(p, p.Name) }

// chunkLatency reads 50 streams of an event in 20 ms and takes each event's age at its arrival. The proxy's CPU for an
// event is taken while all of them flow: what it takes to begin and to end a stream is that of a request.
func (b *bench) chunkLatency(p *rig.Proc, name string) error {
	const gap, beside = 20 * time.Millisecond, 15 // events before what is measured, and behind it
	n := int(2 * b.turn() / gap)
	request := sized(1<<10, fmt.Sprintf("%s?chunks=%d&gap=20", chatPath, n+2*beside), true)
	var mu sync.Mutex
	var ages []time.Duration
	var failed error
	var all sync.WaitGroup
	var came atomic.Int64
	for i := range 50 {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 400 * time.Microsecond) // so that they do not beat in step
			own, err := readAges(p.Addr, request, &came)
			mu.Lock()
			defer mu.Unlock()
			ages = append(ages, own...)
			if err != nil {
				failed = err
			}
		})
	}
	time.Sleep(beside * gap)
	before, first := p.CPU(), came.Load()
	time.Sleep(time.Duration(n) * gap)
	used, chunks := p.CPU()-before, came.Load()-first
	all.Wait()
	if name != direct && chunks > 0 {
		b.note("sse/paced-cpu", name, float64(used.Nanoseconds())/1e3/float64(chunks))
	}
	b.noteAdded("sse/added", name, ages)
	return failed
}

// readAges reads one stream, and counts its events.
func readAges(addr string, request []byte, came *atomic.Int64) (ages []time.Duration, err error) {
	c, err := wire.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	h, err := c.ReadHead()
	if err != nil || h.Status != 200 {
		return nil, fmt.Errorf("status %d: %w", h.Status, err)
	}
	err = c.ReadBody(h, func(piece []byte) {
		now := time.Now().UnixNano()
		for {
			_, after, ok := bytes.Cut(piece, []byte(" t"))
			if !ok {
				return
			}
			digits, rest, _ := bytes.Cut(after, []byte(`"`))
			if t, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
				ages = append(ages, time.Duration(now-t))
				came.Add(1)
			}
			piece = rest
		}
	})
	return ages, err
}
