package message

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLifeTellsItsEndOnce(t *testing.T) {
	var all Lives
	var l Life
	var h, late listener
	all.Begin(&l)
	child, cancel := context.WithCancel(&l)
	defer cancel()
	l.Hear(&h)
	if l.Err() != nil || h.told.Load() != 0 {
		t.Fatal("it has ended already")
	}
	l.End(ErrClientGone)
	l.End(ErrDraining)
	l.Hear(&late)
	l.Forget(&late)
	<-l.Done()
	<-child.Done()
	if h.told.Load() != 1 || late.told.Load() != 1 || !errors.Is(context.Cause(child), ErrClientGone) || context.Cause(&l) != ErrClientGone {
		t.Fatalf("told %d and %d times; causes %v, %v", h.told.Load(), late.told.Load(), context.Cause(child), context.Cause(&l))
	}
	l.Leave()
}

func TestLifeForgetsWhoIsNotInterested(t *testing.T) {
	var all Lives
	var l Life
	var h listener
	all.Begin(&l)
	l.Hear(&h)
	l.Forget(&h)
	child, cancel := context.WithTimeout(&l, time.Hour)
	cancel()
	<-child.Done()
	if len(l.others) != 0 {
		t.Fatal("a context that has ended is still waited with")
	}
	for _, o := range l.others[:cap(l.others)] {
		if o != nil {
			t.Fatal("a context that has ended is held for as long as the request lasts")
		}
	}
	l.Leave()
	if h.told.Load() != 0 || all.all.First != nil {
		t.Fatal("the end of a request reached who had left, or it is still listed")
	}
}

func TestCutEndsWhoIsThereAndWhoComes(t *testing.T) {
	var all Lives
	var a, b, c, d Life
	for _, l := range []*Life{&a, &b, &c} {
		all.Begin(l)
	}
	b.Leave()
	all.Cut(ErrDraining)
	all.Begin(&d)
	if a.Err() != ErrDraining || b.Err() != context.Canceled || c.Err() != ErrDraining || d.Err() != ErrDraining {
		t.Fatal(a.Err(), b.Err(), c.Err(), d.Err())
	}
	for _, l := range []*Life{&d, &a, &c} {
		l.Leave()
	}
	if all.all.First != nil {
		t.Fatal("requests that have left are still listed")
	}
}
