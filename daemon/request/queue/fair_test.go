package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestJain: equal flows have equal seconds of prefill, though the requests of one cost a thousand times those of another.
func TestJain(t *testing.T) {
	const flows = 50
	q, chance := New(roomy), rand.New(rand.NewPCG(3, 4))
	request := func(i int) *Request {
		mean := .01 * math.Pow(1000, float64(i)/(flows-1))
		return &Request{Key: fmt.Sprint(i), Cost: mean * (.5 + chance.Float64()), Owner: i}
	}
	for i := range flows {
		enter(t, q, start, request(i), request(i))
	}
	seconds := make([]float64, flows)
	at := start
	for at.Before(after(3600)) {
		r := q.Next(at)
		q.Served(r, at)
		at = at.Add(time.Duration(r.Cost / 8 * float64(time.Second)))
		seconds[r.Owner.(int)] += r.Cost
		enter(t, q, at, request(r.Owner.(int))) // so none is ever empty
	}
	if j := jain(seconds); j < .99 {
		t.Errorf("Jain's index is %.4f; want .99 at least: %.0f", j, seconds)
	}
}

// jain is 1 if all values are the same, and 1/n if one has all.
func jain(values []float64) float64 {
	sum, squares := 0., 0.
	for _, v := range values {
		sum += v
		squares += v * v
	}
	return sum * sum / float64(len(values)) / squares
}

// TestNobodyWaitsForEver: under an endless flood of a higher class, and of its own, each flow is served.
func TestNobodyWaitsForEver(t *testing.T) {
	q := New(roomy)
	var light []*Request
	for i := range 10 {
		r := &Request{Key: fmt.Sprint("light", i), Class: -i / 2, Cost: 1}
		light = append(light, r)
		enter(t, q, start, r)
	}
	for i := range 20_000 {
		at := after(float64(i) / 100)
		enter(t, q, at, &Request{Key: "high", Class: 1, Cost: .01}, &Request{Key: "flood", Class: -i % 6, Cost: 3})
		serve(q, at, 1)
	}
	for _, r := range light {
		if r.flow != nil {
			t.Errorf("%s, class %d, still waits after 200 s", r.Key, r.Class)
		}
	}
}

// A turn costs the same however many flows there are, all else equal: B/op is 0, and ns/op of 10,000 flows is a few times
// that of 10, as their memory is in no cache.
func BenchmarkTurn(b *testing.B) {
	for _, flows := range []int{10, 10_000} {
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			q := New(Config{MaxRequests: 1 << 20, MaxBytes: 1 << 40, Starve: 5 * time.Second})
			all := make([]Request, 20_000)
			for i := range all {
				all[i] = Request{Flow: fmt.Sprint(i % flows), Cost: .01 + float64(i%1009)/100}
				q.Enter(&all[i], start)
			}
			b.ReportAllocs()
			for b.Loop() {
				r := q.Next(start)
				q.Served(r, start)
				r.Entered = time.Time{}
				q.Enter(r, start)
			}
		})
	}
}

// BenchmarkIdle is what a request costs while nothing waits.
func BenchmarkIdle(b *testing.B) {
	q := New(roomy)
	for b.Loop() {
		if q.Depth() > 0 {
			b.Fatal("something waits")
		}
	}
}
