package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// honest sends rate requests a second for d, as a client that does nothing wrong, and returns their times and failures.
func honest(l *lab, addr string, rate float64, d time.Duration) (took []time.Duration, failed int64) {
	took = make([]time.Duration, int(rate*d.Seconds()))
	var bad atomic.Int64
	wire.Open(l.ctx, addr, rate, 32, d, func(c *wire.Client, i int, due time.Time) {
		mark := newMark()
		if a := c.Do(plain(mark, ""), true); !good(a, mark) {
			bad.Add(1)
		}
		took[i] = time.Since(due)
	})
	return took, bad.Load()
}

// checkSlowloris has two daemons of the same kind: one that nobody attacks, and one that thousands of slow clients
// are connected to. An honest client asks one and then the other, round after round, so that what else the machine
// does falls on both. The slow clients are a process of their own and write as much in all rounds: in those of the
// first daemon to sockets that nobody reads. So their own work, which is another machine's, falls on both; what the
// daemon does with the bytes falls on its own rounds.
//
// The mark compares the medians of the rounds' p99, as a hiccup of the machine in one round, on either side, would
// decide the p99 of all together. If it is missed after the first rounds there are more, three times as many at most,
// and none is thrown away: a daemon's slowness is in most of its rounds.
func checkSlowloris(l *lab) (verdict, error) {
	const server = "read_timeout = \"20s\"\n"
	left, _, err := l.inFront(2, server, "")
	if err != nil {
		return verdict{}, err
	}
	r, _, err := l.inFront(2, server, "")
	if err != nil {
		return verdict{}, err
	}
	stuck, readers, err := stuckStreams(l)
	if err != nil {
		return verdict{}, err
	}
	n := pick(l, 2000, 5000)
	slow, err := l.slowProc(r.Addr, n)
	if err != nil {
		return verdict{}, err
	}
	defer slow.Stop()
	var before, during []time.Duration // each round's p99
	var failed int64
	sent := 0
	rounds, most := pick(l, 6, 12), pick(l, 18, 36)
	ratio := 0.0
	for i := range most {
		if i >= rounds && ratio <= 1.2 || l.ctx.Err() != nil {
			break
		}
		tell(slow, "/aside")
		took, bad := honest(l, left.Addr, honestRate, time.Second)
		before, failed = append(before, wire.Quantile(took, .99)), failed+bad
		at := tell(slow, "/attack")
		took, bad = honest(l, r.Addr, honestRate, time.Second)
		during, failed = append(during, wire.Quantile(took, .99)), failed+bad
		sent += tell(slow, "/attack") - at
		ratio = float64(wire.Quantile(during, .5)) / float64(wire.Quantile(before, .5))
	}
	each := float64(sent) / float64(n) / float64(len(during)) // a round is a second
	return say(ratio <= 1.2 && failed == 0 && stuck <= 128 && each >= .25,
		"%d slow headers and bodies, %.2f bytes a second each: honest p99 %s without and %s with them (%.2fx), %d of %d "+
			"requests failed; %.0f KiB for each of %d stuck streams",
		n, each, ms(wire.Quantile(before, .5)), ms(wire.Quantile(during, .5)), ratio, failed, (len(before)+
			len(during))*honestRate, stuck, readers)
}

const honestRate = 300 // requests a second

// quiet reports whether the daemon does next to nothing.
func quiet(r *router) bool {
	used := r.CPU()
	time.Sleep(300 * time.Millisecond)
	return r.CPU()-used < 20*time.Millisecond
}

// stuckStreams measures the memory of a stream whose client does not read, on a daemon of its own. It does not count a
// first third of the readers: for these the daemon makes what it makes only once.
func stuckStreams(l *lab) (kib float64, readers int, err error) {
	r, _, err := l.inFront(2, "", "")
	if err != nil {
		return 0, 0, err
	}
	quit := make(chan struct{})
	var all sync.WaitGroup
	defer func() { close(quit); all.Wait() }()
	honest(l, r.Addr, honestRate, time.Second)
	readers = pick(l, 60, 200)
	start := func(n int) int64 {
		for range n {
			all.Go(func() { slowReader(r.Addr, quit) })
		}
		// The kernel's buffers fill first: some MB a stream.
		rig.Eventually(5*time.Second, func() bool { return !quiet(r) })
		rig.Eventually(20*time.Second, func() bool { return quiet(r) })
		return r.RSS()
	}
	first := start(readers / 2)
	second := start(readers)
	return float64(second-first) / 1024 / float64(readers), readers, nil
}

// slowReader asks for a stream as fast as it goes and does not read.
func slowReader(addr string, quit chan struct{}) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Reset()
	c.Write(streaming(newMark(), 1_000_000, 0, "&pad=16000"))
	<-quit
}
