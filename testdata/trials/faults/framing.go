package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/trials/faults/probes"
)

// frame sends each probe. It returns which reached the worker, and which were answered as if they were sound.
func frame(addr string, asked func() int64, all []probes.Probe) (reached, answered, echoed []string) {
	for _, p := range all {
		before := asked()
		got := probes.Send(addr, p.Raw, 250*time.Millisecond)
		if asked() != before {
			reached = append(reached, p.Name)
		}
		if strings.HasPrefix(got, "HTTP/1.1 2") || strings.Contains(got, "\nHTTP/1.1 2") {
			answered = append(answered, p.Name)
		}
		if strings.Contains(got, "smuggled") || strings.Contains(got, probes.Body) {
			echoed = append(echoed, p.Name)
		}
	}
	return reached, answered, echoed
}

func checkFraming(l *lab) (verdict, error) {
	var heard atomic.Int64 // whole requests and garbage, except those that the routers make themselves
	n, err := l.startNode(&node{at: func(string) { heard.Add(1) }})
	if err != nil {
		return verdict{}, err
	}
	one, err := l.inFrontOf("", "", n)
	if err != nil {
		return verdict{}, err
	}
	asked := func() int64 { return heard.Load() + l.bad.Load() }
	reached, answered, echoed := frame(one.Addr, asked, probes.Ambiguous)
	sound, _, _ := frame(one.Addr, asked, probes.Controls)
	bad := l.bad.Load()
	l.peers([]string{n.addr}, func(addr string) string {
		before := l.bad.Load()
		reached, _, _ := frame(addr, asked, probes.Ambiguous)
		return fmt.Sprintf("%d of %d reached the worker, %d of them unsound as sent: %s", len(reached),
			len(probes.Ambiguous), l.bad.Load()-before, strings.Join(reached, "; "))
	})
	l.bad.Store(bad) // a peer's are not ours
	all := slices.Concat(reached, answered)
	slices.Sort(all)
	return say(len(reached) == 0 && len(answered) == 0 && len(echoed) == 0 && len(sound) == len(probes.Controls),
		"%d of %d reached a worker, %d answered 2xx, %d echoed, %d of %d controls reached it: %s",
		len(reached), len(probes.Ambiguous), len(answered), len(echoed), len(sound), len(probes.Controls),
		strings.Join(slices.Compact(all), "; "))
}
