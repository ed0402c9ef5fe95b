package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// killed is the result of a kill.
type killed struct {
	lost, broken, told, clean int
	slowest                   time.Duration // from the kill to the end of a broken stream
	why                       []string
}

func (k killed) String() string {
	return fmt.Sprintf("lost %d of 50; %d of 200 streams broken, %d told by an error event and a broken end, %d "+
		"ended as if whole; slowest %s %s",
		k.lost, k.broken, k.told, k.clean, ms(k.slowest), some(k.why))
}

// kill opens 200 streams and 50 requests that wait for their answer, kills the victim and watches.
func kill(addr string, victim *rig.Proc) (k killed) {
	const streams, waiting = 200, 50
	var mu sync.Mutex // guards k
	var all sync.WaitGroup
	var at atomic.Int64 // the kill, unix ns
	var begun atomic.Int64
	for range streams {
		all.Go(func() {
			mark := newMark()
			first := true
			s := watch(addr, streaming(mark, 90, 50*time.Millisecond, ""), mark, func(c *wire.Conn, s *seen) {
				if first {
					begun.Add(1)
					first = false
				}
			})
			if s.fine() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			k.broken++
			k.slowest = max(k.slowest, s.end.Sub(time.Unix(0, at.Load())))
			switch {
			case s.told():
				k.told++
			default:
				if s.whole {
					k.clean++
				}
				k.why = append(k.why, s.String())
			}
		})
	}
	rig.Eventually(5*time.Second, func() bool { return begun.Load() == streams })
	for range waiting {
		all.Go(func() {
			mark := newMark()
			if a := wire.Once(addr, plain(mark, "&hold=2000")); !good(a, mark) {
				mu.Lock()
				defer mu.Unlock()
				k.lost++
				k.why = append(k.why, fmt.Sprintf("lost: %d %v", a.Status, a.Err))
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	at.Store(time.Now().UnixNano())
	victim.Signal(syscall.SIGKILL)
	all.Wait()
	return k
}

func checkKill(l *lab) (verdict, error) {
	var workers []*rig.Proc
	var at []string
	for range 4 {
		w, err := l.workerProc()
		if err != nil {
			return verdict{}, err
		}
		workers, at = append(workers, w), append(at, w.Addr)
	}
	r, err := l.serve(rig.Router{Pool: poolKeys, Workers: at})
	if err != nil {
		return verdict{}, err
	}
	k := kill(r.Addr, workers[0])
	left := workers[1:]
	for _, peer := range []func(string, ...string) (*rig.Proc, error){rig.Nginx, rig.Haproxy} {
		w, err := l.workerProc()
		if err != nil {
			return verdict{}, err
		}
		p, err := peer(l.dir, append([]string{w.Addr}, left[0].Addr, left[1].Addr, left[2].Addr)...)
		if err != nil {
			continue
		}
		l.report.print(line{Fault: l.what, Peer: p.Name, Figure: kill(p.Addr, w).String()})
		p.Stop()
	}
	return say(k.lost == 0 && k.broken > 0 && k.told == k.broken && k.slowest < time.Second, "%v", k)
}

// back takes a node away under load. It returns how long after its return it gets a request, and how many requests
// failed.
func back(l *lab, addr string, n *node) (again time.Duration, failed int64, err error) {
	var bad atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			c := wire.Client{Addr: addr}
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				mark := newMark()
				if a := c.Do(plain(mark, ""), true); !good(a, mark) {
					bad.Add(1)
				}
			}
		})
	}
	time.Sleep(time.Second)
	n.Close()
	time.Sleep(pick(l, 3*time.Second, 8*time.Second)) // haproxy takes 6 s to see it
	if err = n.Start(n.addr); err == nil {
		before, began := n.posts.Load(), time.Now()
		rig.Eventually(30*time.Second, func() bool { return n.posts.Load() > before })
		again = time.Since(began)
	}
	close(stop)
	all.Wait()
	return again, bad.Load(), err
}

func checkBack(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(2, "", "")
	if err != nil {
		return verdict{}, err
	}
	again, failed, err := back(l, r.Addr, nodes[0])
	if err != nil {
		return verdict{}, err
	}
	l.peers(addrs(nodes), func(addr string) string {
		again, failed, err := back(l, addr, nodes[0])
		return fmt.Sprintf("used again after %s, %d failed %v", ms(again), failed, err)
	})
	return say(again <= 2*time.Second && failed == 0, "used again after %s, %d failed", ms(again), failed)
}
