package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopped is how long Redis is stopped.
	stopped = 30 * time.Second
	// settles is how long routers have to agree again.
	settles = 5 * time.Second
)

// faults breaks something in the middle of the tenants' traffic, and prints the figures before, meanwhile and after.
func faults(ctx context.Context, o *options) error {
	s := scene{"four that share", o.share, true}
	if o.fault == "state" {
		s = scene{"one router with a state file", 1, false}
	}
	st, err := newStage(o, s)
	if err != nil {
		return err
	}
	defer st.close()
	of := *o
	of.requests = max(o.requests, enough(o, s.routers))
	tr := generators(&of)[0]
	half := len(tr.requests) / 2
	at := tr.requests[half].at
	var once sync.Once
	var broken error
	knocks := st.knock(ctx)
	defer knocks.stop()
	all := play(ctx, st, tr, o.speed, func(i int) {
		if i == half {
			once.Do(func() { broken = st.breaks(ctx, o.fault, knocks) })
		}
	})
	if err := errors.Join(broken, ctx.Err()); err != nil {
		return err
	}
	from := func(at float64) int {
		i, _ := slices.BinarySearchFunc(all, at, func(o outcome, at float64) int { return int(o.at*1e6) - int(at*1e6) })
		return i
	}
	parts := []part{{"the router's 200 before", last(own(all[:half], 0))},
		{"its next 200", first(own(all[half:], 0))}, {"all after", all[half:]}}
	if o.fault == "redis" || o.fault == "none" {
		back := from(at + stopped.Seconds()*o.speed)
		well := from(at + (stopped+settles).Seconds()*o.speed)
		parts = []part{{"before", all[max(0, half-(len(all)-back)):half]}, {"while Redis is stopped", all[half:back]},
			{"the 5 s after", all[back:well]}, {"the rest", all[well:]}}
	}
	var told []map[string]any
	for _, p := range parts {
		f := figures(p.of, map[string]any{"fault": o.fault, "part": p.name})
		told = append(told, f)
		if err := tell(f); err != nil {
			return err
		}
	}
	if err := knocks.report(o); err != nil {
		return err
	}
	if o.fault == "redis" || o.fault == "none" {
		return judge(o, append(knocks.marks(all), backAgain(told)...))
	}
	return judge(o, []mark{keptRate(told)})
}

type part struct {
	name string
	of   []outcome
}

func (st *stage) breaks(ctx context.Context, fault string, k *knocks) error {
	switch fault {
	case "kill": // and start anew, before the next request goes anywhere
		st.routers[0].Stop()
		return st.restart(0)
	case "state": // end in order, and start anew
		st.routers[0].End(time.Minute)
		return st.restart(0)
	case "redis", "none":
		if fault == "redis" {
			st.redis.Signal(syscall.SIGSTOP)
		}
		k.during.Lock()
		k.phase = 1
		k.during.Unlock()
		time.AfterFunc(stopped, func() {
			st.redis.Signal(syscall.SIGCONT)
			k.during.Lock()
			k.phase = 2
			k.during.Unlock()
		})
		return nil
	}
	return fmt.Errorf("-fault %q: want kill, state, redis or none", fault)
}

func (st *stage) restart(i int) error {
	r, err := st.startRouter(i)
	if err != nil {
		return err
	}
	st.changing.Lock()
	defer st.changing.Unlock()
	st.routers[i] = r
	return nil
}

// knocks are short requests to a pool whose worker takes no time: how long one takes is the router's own time.
type knocks struct {
	during sync.Mutex // guards phase and took
	phase  int
	took   [3][]time.Duration
	failed int
	stop   func()
}

// knock knocks at the routers in turn, 40 times a second, until stop.
func (st *stage) knock(ctx context.Context) *knocks {
	ctx, cancel := context.WithCancel(ctx)
	k := &knocks{stop: cancel}
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(25 * time.Millisecond)
			st.changing.Lock()
			to := st.routers[i%len(st.routers)].URL()
			st.changing.Unlock()
			began := time.Now()
			body := fmt.Sprintf(`{"model":"quick","max_tokens":1,"prompt":%q}`, text(fmt.Sprint("knock ", i%100), 200))
			resp, err := st.request(ctx, to, strings.NewReader(body))
			status := 0
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				status = resp.StatusCode
				resp.Body.Close()
			}
			took := time.Since(began)
			k.during.Lock()
			if ctx.Err() == nil && (err != nil || status != 200) {
				k.failed++
			}
			k.took[k.phase] = append(k.took[k.phase], took)
			k.during.Unlock()
		}
	}()
	return k
}

// report prints how long knocks took, in milliseconds.
func (k *knocks) report(o *options) error {
	k.during.Lock()
	defer k.during.Unlock()
	into := map[string]any{"fault": o.fault, "part": "knocks", "failed": k.failed}
	for i, name := range []string{"before", "stopped", "after"} {
		all := k.took[i]
		slices.Sort(all)
		if n := len(all); n > 0 {
			ms := func(at int) float64 { return float64(all[at].Microseconds()) / 1e3 }
			into[name] = map[string]any{"n": n, "p50_ms": ms(n / 2), "p99_ms": ms(n * 99 / 100), "max_ms": ms(n - 1)}
		}
	}
	return tell(into)
}
