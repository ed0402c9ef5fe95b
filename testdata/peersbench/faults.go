package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// faults breaks something in the middle of the tenants' traffic, and prints the figures before, meanwhile and after.
func faults(ctx context.Context, o *options) error {
	st, err := newStage(o, scene{"four that share", 4, true})
	if err != nil {
		return err
	}
	defer st.close()
	tr := generators(o)[0]
	half := len(tr.requests) / 2
	var once sync.Once
	var back int
	var broken error
	all := play(ctx, st, tr, o.speed, func(i int) {
		if i == half {
			once.Do(func() { broken = st.breaks(o.fault) })
			back = i
		}
	})
	if broken != nil {
		return broken
	}
	next := min(len(all), back+200)
	parts := map[string][]outcome{"the 200 before": all[max(0, back-200):back], "the 200 after": all[back:next],
		"the rest": all[next:]}
	for _, name := range []string{"the 200 before", "the 200 after", "the rest"} {
		if err := tell(figures(parts[name], map[string]any{"fault": o.fault, "part": name})); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) breaks(fault string) error {
	switch fault {
	case "kill": // and start anew, before the next request goes anywhere
		st.routers[0].kill()
		r, err := st.startRouter(0)
		if err != nil {
			return err
		}
		st.routers[0] = r
		return st.awaitReady(r)
	case "redis":
		_ = st.redis.Process.Signal(syscall.SIGSTOP)
		time.AfterFunc(30*time.Second, func() { _ = st.redis.Process.Signal(syscall.SIGCONT) })
		return nil
	}
	return fmt.Errorf("-fault %q: want kill or redis", fault)
}
