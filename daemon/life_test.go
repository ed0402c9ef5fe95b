package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

type listener struct{ told atomic.Int32 }

func (l *listener) Ended() { l.told.Add(1) }

func TestLifeTellsItsEndOnce(t *testing.T) {
	var all lives
	var l life
	var h, late listener
	all.begin(&l)
	child, cancel := context.WithCancel(&l)
	defer cancel()
	l.Hear(&h)
	if l.Err() != nil || h.told.Load() != 0 {
		t.Fatal("it has ended already")
	}
	l.end(errClientGone)
	l.end(errDraining)
	l.Hear(&late)
	l.Forget(&late)
	<-l.Done()
	<-child.Done()
	if h.told.Load() != 1 || late.told.Load() != 1 || !errors.Is(context.Cause(child), errClientGone) || context.Cause(&l) != errClientGone {
		t.Fatalf("told %d and %d times; causes %v, %v", h.told.Load(), late.told.Load(), context.Cause(child), context.Cause(&l))
	}
	l.leave()
}

func TestLifeForgetsWhoIsNotInterested(t *testing.T) {
	var all lives
	var l life
	var h listener
	all.begin(&l)
	l.Hear(&h)
	l.Forget(&h)
	child, cancel := context.WithTimeout(&l, time.Hour)
	cancel()
	<-child.Done()
	if len(l.others) != 0 {
		t.Fatal("a context that has ended is still waited with")
	}
	l.leave()
	if h.told.Load() != 0 || all.first != nil {
		t.Fatal("the end of a request reached who had left, or it is still listed")
	}
}

func TestCutEndsWhoIsThereAndWhoComes(t *testing.T) {
	var all lives
	var a, b, c, d life
	for _, l := range []*life{&a, &b, &c} {
		all.begin(l)
	}
	b.leave()
	all.cut(errDraining)
	all.begin(&d)
	if a.Err() != errDraining || b.Err() != context.Canceled || c.Err() != errDraining || d.Err() != errDraining {
		t.Fatal(a.Err(), b.Err(), c.Err(), d.Err())
	}
	for _, l := range []*life{&d, &a, &c} {
		l.leave()
	}
	if all.first != nil {
		t.Fatal("requests that have left are still listed")
	}
}
