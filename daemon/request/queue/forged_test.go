package queue

import (
	"fmt"
	"testing"
	"time"
)

// Forged names of flows, 200,000 of them: the queue holds no more than what waits, and nothing once that has gone.
func TestForgedFlows(t *testing.T) {
	q := New(Config{MaxRequests: 3 * MaxFlows / 2, MaxBytes: 1 << 40})
	at, waits := time.Unix(1e9, 0), []*Request{}
	for i := range 200_000 {
		r := &Request{Key: "team", Flow: fmt.Sprint("forged-", i), Cost: .1, Bytes: 1}
		at = at.Add(time.Millisecond)
		if out, ok := q.Enter(r, at); !ok || len(out) > 0 {
			t.Fatalf("request %d: %v, displaces %d", i, ok, len(out))
		}
		waits = append(waits, r)
		if len(q.flows) > MaxFlows+1 || len(q.keys) > 1 || len(q.lanes) > 1 {
			t.Fatalf("%d flows, %d keys, %d lanes", len(q.flows), len(q.keys), len(q.lanes))
		}
		for len(waits) > 6*MaxFlows/5 { // the oldest goes, or has its turn
			if r := q.Next(at); r != nil && i%2 == 0 {
				q.Served(r, at)
			}
			q.Leave(waits[0], at)
			waits = waits[1:]
		}
	}
	for _, r := range waits {
		q.Leave(r, at)
	}
	if q.Depth() != 0 || len(q.flows)+len(q.keys)+len(q.lanes)+len(q.ready)+len(q.aged) != 0 || q.bytes != 0 {
		t.Errorf("%d wait at the end; %d flows, %d keys, %d lanes, %d bytes", q.Depth(), len(q.flows), len(q.keys),
			len(q.lanes), q.bytes)
	}
}

// A clock that steps by hours, back and forth, neither stops the turns nor makes a prediction that is none.
func TestClockSteps(t *testing.T) {
	q := New(Config{MaxRequests: 1000, MaxBytes: 1 << 30, Starve: 5 * time.Second})
	at := time.Unix(1e9, 0)
	for i := range 100 {
		r := &Request{Class: i % 3, Key: fmt.Sprint(i % 5), Cost: 1}
		if _, ok := q.Enter(r, at); !ok {
			t.Fatal("it is full")
		}
		at = at.Add([]time.Duration{time.Second, -3 * time.Hour, 2 * time.Hour, -time.Nanosecond}[i%4])
	}
	for i := range 100 {
		at = at.Add([]time.Duration{-time.Hour, time.Second, time.Hour}[i%3])
		r := q.Next(at)
		if r == nil {
			t.Fatalf("nobody has turn %d, and %d wait", i, q.Depth())
		}
		if p := q.Predict(r); p < 0 || p > time.Hour {
			t.Errorf("a prediction of %v", p)
		}
		q.Served(r, at)
	}
}
