package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/wire"
)

// send writes raw bytes on a connection of its own and returns all that comes back within a second, or less if the
// connection ends.
func send(addr, raw string, wait time.Duration) string {
	c, err := wire.Dial(addr)
	if err != nil {
		return ""
	}
	defer c.Close()
	go c.Write([]byte(raw)) // may be refused half-way
	var got []byte
	buf := make([]byte, 16<<10)
	for end := time.Now().Add(wait); len(got) < 1<<20; {
		c.SetReadDeadline(end)
		n, err := c.R.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(got)
}

// frame sends each probe and tells which reached the worker, and which were answered as if they were sound.
func frame(addr string, asked func() int64, probes []probe) (reached, answered, echoed []string) {
	for _, p := range probes {
		before := asked()
		got := send(addr, p.raw, 250*time.Millisecond)
		if asked() != before {
			reached = append(reached, p.name)
		}
		if strings.HasPrefix(got, "HTTP/1.1 2") || strings.Contains(got, "\nHTTP/1.1 2") {
			answered = append(answered, p.name)
		}
		if strings.Contains(got, "smuggled") || strings.Contains(got, goodBody) {
			echoed = append(echoed, p.name)
		}
	}
	return reached, answered, echoed
}

func checkFraming(l *lab) (verdict, error) {
	var heard atomic.Int64 // whole requests and what was none, but for those the routers make themselves
	n, err := l.startNode(&node{at: func(string) { heard.Add(1) }})
	if err != nil {
		return verdict{}, err
	}
	one, err := l.inFrontOf("", "", n)
	if err != nil {
		return verdict{}, err
	}
	asked := func() int64 { return heard.Load() + l.bad.Load() }
	reached, answered, echoed := frame(one.Addr, asked, ambiguous)
	sound, _, _ := frame(one.Addr, asked, controls)
	bad := l.bad.Load()
	l.peers([]string{n.addr}, func(addr string) string {
		before := l.bad.Load()
		reached, _, _ := frame(addr, asked, ambiguous)
		return fmt.Sprintf("%d of %d reached the worker, %d of them unsound as sent: %s", len(reached), len(ambiguous), l.bad.Load()-before, strings.Join(reached, "; "))
	})
	l.bad.Store(bad) // a peer's are not ours
	all := slices.Concat(reached, answered)
	slices.Sort(all)
	return say(len(reached) == 0 && len(answered) == 0 && len(echoed) == 0 && len(sound) == len(controls),
		"%d of %d reached a worker, %d answered 2xx, %d echoed, %d of %d controls reached it: %s",
		len(reached), len(ambiguous), len(answered), len(echoed), len(sound), len(controls), strings.Join(slices.Compact(all), "; "))
}
