package daemon

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// lateRedis stands before a Redis and holds back one answer of so many, for longer than a router waits, as a machine
// does that has too little time for all its processes.
func lateRedis(t *testing.T, url string, oneOf *atomic.Int64) string {
	return "redis://" + porttest.Serve(t, func(near *net.TCPConn) {
		far, err := net.Dial("unix", strings.TrimPrefix(url, "unix://"))
		if err != nil {
			near.Close()
			return
		}
		go func() { _, _ = io.Copy(far, near); far.Close() }()
		defer near.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := far.Read(buf)
			if err != nil {
				return
			}
			if of := oneOf.Load(); of > 0 && rand.Int64N(of) == 0 {
				time.Sleep(12 * time.Millisecond)
			}
			if _, err := near.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// A Redis that is late for every tenth answer moves no session either: opened at one router, used at another, without
// a fault.
func TestAStarvedMachineMovesNoSession(t *testing.T) {
	var oneOf atomic.Int64
	url := lateRedis(t, redistest.Start(t).URL(), &oneOf)
	toml := fmt.Sprintf("[cache]\nredis = %q\n", url) + bindAlways + settings("roundrobin", echoes(t, 4)...)
	l := &trackedSessions{t: t, routers: [2]*running{start(t, toml, 4), start(t, toml, 4)}, workers: []string{"w1", "w2", "w3", "w4"}}
	l.silence.Store(true)
	oneOf.Store(10)
	l.open(500, 250, 250)
	for _, s := range l.all {
		s.cold = true // for the second router all are
	}
	for range 2 {
		l.each(l.all, func(s *trackedSession) { l.ask(l.routers[1], s) })
		l.each(l.all, func(s *trackedSession) { l.ask(l.routers[0], s) })
	}
	t.Logf("while late: %d answers aside, %d refused with 503; %d wrong, %d no such session, %d failed", l.aside.Load(), l.refused.Load(),
		l.wrong.Load(), l.noSuch.Load(), l.failed.Load())
	if st := l.routers[1].tier.Stats(); st.L2.Failures == 0 {
		t.Error("Redis was late for nothing")
	}
	oneOf.Store(0)
	l.settled()
	l.silence.Store(false)
	l.homesHold(l.all)
}
