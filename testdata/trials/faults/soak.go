package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// soakFaults are what befalls a worker for a second at a time.
var soakFaults = append([]string{"500", "503", "silent", "drain", "die", "ill"}, brokenAnswers...)

// The soak's fleet: 4 workers with 8 slots of 40 ms are 800 requests/s; streams take 8 x 5 ms, too.
const (
	soakSlots = 8
	soakRate  = .7 * 4 * soakSlots / .040
)

// soakBlocks is the KV cache of each worker, by its metrics: 32,768 tokens. The router's index fills up to what the
// workers can hold; here it is full after some seconds, so that what grows in the second half is no filling.
const soakBlocks = 2048

// flatShare is by how much the memory may grow in the second half of a soak.
const flatShare = .05

func soakCheck(d time.Duration) check {
	return check{name: "soak", what: fmt.Sprintf("%v at 70 %% load with random faults", d),
		pass: fmt.Sprintf("memory flat (second half grows by less than %.0f %%), in flight 0, nobody waits, no place of a "+
			"key is lost, requests in = answered + aborted", 100*flatShare),
		run: func(l *lab) (verdict, error) { return soak(l, d) }}
}

// soak loads a fleet for d. Memory is judged over the second half. If it grew by more than the mark, the soak goes on
// for as long again, twice at most, and is judged over the second half of the whole: buffers that a burst of faults
// has made come to an end, a leak goes on.
func soak(l *lab, d time.Duration) (verdict, error) {
	var nodes []*node
	for range 4 {
		n, err := l.startNode(&node{slots: make(chan struct{}, soakSlots), blocks: soakBlocks})
		if err != nil {
			return verdict{}, err
		}
		nodes = append(nodes, n)
	}
	keys, err := soakKeys(l.dir)
	if err != nil {
		return verdict{}, err
	}
	pool := fmt.Sprintf("strategy = \"prefixaware\"\nhealth_interval = \"300ms\"\nfirst_byte_retry = \"1s\"\n"+
		"stream_timeout = \"1s\"\nmax_in_flight = %d\nqueue = { max_requests = 100, wait = \"3s\" }\n", soakSlots)
	more, err := startFurther()
	defer more.close()
	if err != nil {
		return verdict{}, err
	}
	r, err := l.inFrontOf("keepalive = \"1s\"\n"+keys+more.tables, pool, nodes...)
	if err != nil {
		return verdict{}, err
	}
	counted, err := r.metric("warmpath_requests_total")
	if err != nil {
		return verdict{}, err
	}
	quit := make(chan struct{})
	faultsOver := make(chan struct{})
	go func() { defer close(faultsOver); harass(nodes, quit) }()
	m := watchMemory(r)
	t := &tally{}
	g := growth{}
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { more.play(ctx, r.Addr) })
	for range 3 {
		t.play(l, r.Addr, d)
		g = grown(m.seen())
		if g.share() <= flatShare || l.ctx.Err() != nil {
			break
		}
	}
	m.stop()
	stop()
	beside.Wait()
	close(quit)
	<-faultsOver
	var left error
	free := rig.Eventually(40*time.Second, func() bool {
		left = errors.Join(r.rest(), more.kept())
		return left == nil
	})
	now, err := r.metric("warmpath_requests_total")
	if err != nil {
		return verdict{}, err
	}
	waited, err := r.metric("warmpath_queue_wait_seconds_count")
	if err != nil {
		return verdict{}, err
	}
	in, hasty := t.sent.Load()+more.sent.Load(), t.hasty.Load()+more.left.Load()
	over := in + hasty - int64(now-counted)
	balanced := over >= 0 && over <= hasty // the router may not have read a hasty one
	return say(free && balanced && g.share() <= flatShare && t.foreign.Load() == 0 && t.wrong.Load() == 0,
		"%d requests in, %.0f counted by the router; client saw %d answered, %d refused or broken, %d aborted by "+
			"itself and %d in any phase, %d foreign, %d with other bytes than were sent; %.0f waited; %s; %s; nothing in "+
			"flight, waiting, held, or taken of a key's places %v (left: %v)",
		in, now-counted, t.good.Load(), t.bad.Load(), t.left.Load(), hasty, t.foreign.Load(), t.wrong.Load(), waited, g,
		more, free, left)
}

// The keys of the soak: streams are under way as many at a time as the first one may have, mostly.
const (
	keyLimited = "limited"
	keyFree    = "free"
)

// soakKeys writes the files of the keys and returns their tables.
func soakKeys(dir string) (tables string, err error) {
	for name, limits := range map[string]string{keyLimited: "max_in_flight = 12\nrequests_per_minute = 1000000\n" +
		"tokens_per_minute = 100000000\n", keyFree: ""} {
		file := filepath.Join(dir, name+".key")
		if err := os.WriteFile(file, []byte(name+"-0123456789"), 0o600); err != nil {
			return "", err
		}
		tables += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n%s", name, file, limits)
	}
	return tables, nil
}

// as shows a key with a request.
func as(key string, request []byte) []byte {
	return bytes.Replace(request, []byte("\r\n"), []byte("\r\nAuthorization: Bearer "+key+"-0123456789\r\n"), 1)
}

// rest returns what is left of requests, nil if nothing is.
func (r *router) rest() error {
	for _, name := range []string{"warmpath_worker_in_flight", "warmpath_queue_depth", "warmpath_queue_bytes",
		"warmpath_held", "warmpath_accounts_open", "warmpath_account_leaks_total"} {
		if n, err := r.metric(name); err != nil || n != 0 {
			return fmt.Errorf("%s is %g (%v)", name, n, err)
		}
	}
	n, err := r.metric("warmpath_key_used_ratio", `key="`+keyLimited+`"`, `limit="max_in_flight"`)
	if err != nil || n != 0 {
		return fmt.Errorf("the key has %g of its places (%v)", n, err)
	}
	return nil
}

// memory samples what a daemon holds, in MB, once a second.
type memory struct {
	mu      sync.Mutex // guards samples
	samples []float64
	quit    chan struct{}
}

func watchMemory(r *router) *memory {
	m := &memory{quit: make(chan struct{})}
	go func() {
		for {
			select {
			case <-m.quit:
				return
			case <-time.After(time.Second):
				m.mu.Lock()
				m.samples = append(m.samples, float64(r.RSS())/(1<<20))
				m.mu.Unlock()
			}
		}
	}()
	return m
}

func (m *memory) stop() { close(m.quit) }

func (m *memory) seen() []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.samples)
}

// growth is the result of the second half of some samples.
type growth struct {
	quarters [4]float64 // what was held after each
	second   float64    // by the line through the second half
	mean     float64    // of the second half
}

func grown(samples []float64) (g growth) {
	if len(samples) < 4 {
		return growth{}
	}
	for i := range g.quarters {
		g.quarters[i] = samples[(i+1)*len(samples)/4-1]
	}
	half := samples[len(samples)/2:]
	g.second = slope(half) * float64(len(half))
	for _, s := range half {
		g.mean += s / float64(len(half))
	}
	return g
}

// share is the growth over the mean; of no samples it is above every mark.
func (g growth) share() float64 {
	if g.mean == 0 {
		return math.Inf(1)
	}
	return g.second / g.mean
}

func (g growth) String() string {
	return fmt.Sprintf("memory %.0f MB after a quarter, %.0f a half, %.0f three, %.0f at the end, second half grew "+
		"by %.2f MB (%.1f %%)",
		g.quarters[0], g.quarters[1], g.quarters[2], g.quarters[3], g.second, 100*g.share())
}

// tally is what the soak's clients saw. wrong are answers that came whole, and are not the worker's bytes. The clients
// of the hasty left before the router had surely read them; sent does not have them.
type tally struct{ sent, good, bad, left, hasty, foreign, wrong atomic.Int64 }

// soakEvents is how many events each of the soak's streams has.
const soakEvents = 8

// play sends plain requests, each on a connection that is kept or two in one write, streams, streams that are left
// half-way, and requests that are left in any phase.
func (t *tally) play(l *lab, addr string, d time.Duration) {
	wire.Open(l.ctx, addr, soakRate, 512, d, func(c *wire.Client, i int, _ time.Time) {
		mark := newMark()
		switch i % 10 {
		case 0, 1, 2, 3:
			t.sent.Add(1)
			s := watch(addr, as(keyLimited, streaming(mark, soakEvents, 5*time.Millisecond, "")), mark, nil)
			t.count(s.fine(), s.foreign != "", s.events == soakEvents)
		case 4:
			t.sent.Add(1)
			watch(addr, as(keyFree, streaming(mark, soakEvents, 5*time.Millisecond, "")), mark, func(c *wire.Conn, s *seen) {
				if s.events > 2 {
					c.Reset()
				}
			})
			t.left.Add(1)
		case 5:
			t.pipeline(addr, mark, newMark())
		case 6:
			t.leave(addr, as([]string{keyFree, keyLimited}[i/10%2], plain(mark, "&hold=40")))
		default:
			t.sent.Add(1)
			t.answered(c.Do(as(keyFree, plain(mark, "&hold=40")), true), mark)
		}
	})
}

// leave sends a request and resets the connection within 60 ms, whatever the request is at.
func (t *tally) leave(addr string, request []byte) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Close()
	t.hasty.Add(1)
	_, _ = c.Write(request)
	time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond)
	c.Reset()
}

// pipeline sends two requests in one write. The second is a hasty one unless the first has its whole answer: a router
// may close after one that failed.
func (t *tally) pipeline(addr, first, second string) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Close()
	_, err = c.Write(slices.Concat(as(keyFree, plain(first, "&hold=20")), as(keyFree, plain(second, "&hold=20"))))
	for i, mark := range []string{first, second} {
		t.sent.Add(1)
		a := wire.Answer{Err: err}
		if err == nil {
			a = c.ReadAnswer(true)
		}
		t.answered(a, mark)
		if a.Err != nil || a.Close {
			t.hasty.Add(int64(1 - i))
			return
		}
	}
}

func (t *tally) answered(a wire.Answer, mark string) {
	t.count(good(a, mark), foreign(a.Body, mark) != "", bytes.Contains(a.Body, []byte(wire.Reply)))
}

func (t *tally) count(good, foreign, whole bool) {
	if good {
		t.good.Add(1)
	} else {
		t.bad.Add(1)
	}
	if foreign {
		t.foreign.Add(1)
	}
	if good && !whole {
		t.wrong.Add(1)
	}
}

// harass lets one worker after the other fail for a second.
func harass(nodes []*node, quit chan struct{}) {
	for {
		n, fault := nodes[rand.IntN(len(nodes))], soakFaults[rand.IntN(len(soakFaults))]
		switch fault {
		case "die":
			n.Close()
		case "ill":
			n.setHealth("503")
		default:
			n.set(fault)
		}
		over := false
		select {
		case <-quit:
			over = true
		case <-time.After(time.Second):
		}
		n.set("")
		n.setHealth("")
		if fault == "die" {
			n.Start(n.addr)
		}
		if over {
			return
		}
		time.Sleep(time.Second)
	}
}

// slope is the least-squares slope of v, a step between two.
func slope(v []float64) float64 {
	n := float64(len(v))
	var sx, sy, sxx, sxy float64
	for i, y := range v {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func linesOf(s string) iter.Seq[string] { return strings.SplitSeq(s, "\n") }
