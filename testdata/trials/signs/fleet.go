package main

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// fleet is some engines, of which the first plays the sign.
type fleet []*site

func newFleet(a *sign, size int) (f fleet, err error) {
	for n := range size {
		s, err := newSite(n == 0 && a.gated)
		if err != nil {
			return f, err
		}
		f = append(f, s)
	}
	return f, nil
}

func (f fleet) doors() (all []string) {
	for _, s := range f {
		all = append(all, s.door())
	}
	return all
}

func (f fleet) close() {
	for _, s := range f {
		if s.gate != nil {
			s.gate.Close()
		}
		s.Close()
	}
}

// Before and after the sign the fleet is well for so long.
const (
	before = 3 * time.Second
	after  = 4 * time.Second
)

// figure is what one router made of it.
type figure struct {
	tally
	Explained int64 `json:"explained"`
}

// starter starts a router in front of engines.
type starter func(doors []string) (*rig.Proc, error)

// behind plays the sign in a fleet behind a router.
func behind(ctx context.Context, a *sign, rate float64, d time.Duration, start starter) (figure, error) {
	f, err := newFleet(a, engines)
	defer f.close()
	if err != nil {
		return figure{}, err
	}
	router, err := start(f.doors())
	if err != nil {
		return figure{}, err
	}
	defer router.Stop()
	return f.trial(ctx, a, router.Addr, rate, d), nil
}

// alone plays the sign at a single engine without a router.
func alone(ctx context.Context, a *sign, rate float64, d time.Duration) (figure, error) {
	f, err := newFleet(a, 1)
	defer f.close()
	if err != nil {
		return figure{}, err
	}
	return f.trial(ctx, a, f[0].door(), rate, d), nil
}

// trial plays the sign under the load that comes to an address.
func (f fleet) trial(ctx context.Context, a *sign, addr string, rate float64, d time.Duration) figure {
	lost := make(chan int64, 1)
	go func() {
		time.Sleep(before)
		was := f.busy()
		f[0].play(a)
		time.Sleep(d)
		if a.serves {
			lost <- 0
		} else {
			lost <- short(was, f.busy(), rate, d)
		}
		f[0].recover()
	}()
	t := press(ctx, addr, rate, before+d+after)
	return figure{t, <-lost + f[0].cut.Load() + f[0].blind.Load()}
}

// busy is how long each engine has answered, over all its places.
func (f fleet) busy() (all []time.Duration) {
	for _, s := range f {
		all = append(all, time.Duration(s.busy.Load()))
	}
	return all
}

// short is how many requests the fleet could not answer for want of the first engine's places, within d and the time
// that a client waits: no more than those places stood idle, less what stood idle at the others. Nor more than was
// asked for beyond the others' places and beyond what waits there at the end without a client's losing patience.
func short(was, is []time.Duration, rate float64, d time.Duration) int64 {
	all := time.Duration(places) * d
	idle := all - (is[0] - was[0])
	for n := range was[1:] {
		idle -= max(0, all-(is[n+1]-was[n+1]))
	}
	others := float64(len(was)-1) * places / takes.Seconds() // answers a second
	beyond := rate*d.Seconds() - others*(d+wire.Timeout).Seconds()
	return int64(max(0, min(float64(idle)/float64(takes), beyond)))
}
