package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world is a queue, and keys and a worker in virtual time.
type world struct {
	q       *Queue
	chance  *rand.Rand
	at      time.Time
	mutant  string
	places  int
	work    []*job
	waits   map[*job]bool
	longest time.Duration // that a place was taken
	late    string        // who waited for too long
}

// tenant is a key with its habits.
type tenant struct {
	name    string
	class   int
	lanes   int     // models that it asks for
	clients int     // requests at a time
	prefill float64 // seconds of a request
	place   float64
	lies    float64 // what is expected of the place, of what comes
	leaves  float64 // part of its requests that leave the queue
	light   int     // it has one request at a time, which waits for Starve and so many services at most; 0 = any time
	had     float64 // seconds of prefill and of places
}

// job is a request of a tenant.
type job struct {
	Request
	of     *tenant
	took   time.Duration // at the worker
	charge *Charge
	end    time.Time // of its work, or of its patience; zero = it has much
}

// send has a client of a tenant send a request.
func (w *world) send(t *tenant) {
	place := t.place * (.5 + w.chance.Float64())
	j := &job{of: t, took: time.Duration(place * float64(time.Second))}
	j.Request = Request{Lane: uint64(w.chance.IntN(t.lanes)), Class: t.class, Key: t.name,
		Flow: fmt.Sprint(w.chance.IntN(3)), Cost: t.prefill * (.5 + w.chance.Float64()), Place: place * t.lies, Owner: j}
	switch w.mutant {
	case "a lane is a key":
		j.Key += fmt.Sprint(j.Lane)
	case "places cost nothing":
		j.Place = 0
	}
	if w.chance.Float64() < t.leaves {
		j.end = w.at.Add(time.Duration(w.chance.ExpFloat64() * float64(time.Second)))
	}
	if _, ok := w.q.Enter(&j.Request, w.at); !ok {
		panic("no room")
	}
	w.waits[j] = true
}

// serve gives turns while there is room.
func (w *world) serve() {
	w.q.Wake()
	for r := w.q.Next(w.at); r != nil; r = w.q.Next(w.at) {
		j := r.Owner.(*job)
		if len(w.work) == w.places {
			w.q.Blocked(r)
			continue
		}
		j.charge = w.q.Served(r, w.at)
		switch w.mutant {
		case "nobody goes before others":
			w.q.inOrder = 0
		case "who starves goes before others again and again":
			clear(w.q.earlier)
		case "each turn may go before others":
			w.q.inOrder = ordered
		}
		j.of.had += j.took.Seconds() + r.Cost
		j.end, w.longest = w.at.Add(j.took), max(w.longest, j.took)
		w.work = append(w.work, j)
		delete(w.waits, j)
		if wait := w.at.Sub(r.Entered); j.of.light > 0 && wait > w.q.conf.Starve+time.Duration(j.of.light)*w.longest {
			w.late = fmt.Sprintf("%s waited for %v; the longest service took %v", r.Key, wait, w.longest)
		}
	}
}

// step goes on to what happens next: work ends, or somebody leaves.
func (w *world) step() {
	var next *job
	for _, j := range w.work {
		if next == nil || j.end.Before(next.end) {
			next = j
		}
	}
	for j := range w.waits {
		if !j.end.IsZero() && (next == nil || j.end.Before(next.end) || j.end.Equal(next.end) && j.Lane < next.Lane) {
			next = j
		}
	}
	w.at = next.end
	if w.waits[next] {
		w.q.Leave(&next.Request, w.at)
		delete(w.waits, next)
	} else {
		for i, j := range w.work {
			if j == next {
				w.work[i] = w.work[len(w.work)-1]
				w.work = w.work[:len(w.work)-1]
				break
			}
		}
		if w.mutant != "nobody is charged for what comes" && w.mutant != "places cost nothing" {
			next.charge.End(w.at)
		}
	}
	w.send(next.of)
	w.serve()
}

// live plays tenants for some minutes. It returns the index of Jain of those that count, and who waited for too long.
func live(mutant string, seed uint64, starve time.Duration, tenants []*tenant) (index float64, late string) {
	w := &world{q: New(roomy), chance: rand.New(rand.NewPCG(7, seed)), at: start, mutant: mutant, waits: map[*job]bool{}}
	w.q.conf.Starve = starve
	w.places = 1 + w.chance.IntN(3)
	for _, t := range tenants {
		for range t.clients {
			w.send(t)
		}
	}
	w.serve()
	for w.at.Before(after(300)) {
		w.step()
	}
	for j := range w.waits {
		if j.of.light > 0 && w.at.Sub(j.Entered) > starve+time.Duration(j.of.light)*w.longest {
			w.late = j.Key + " still waits"
		}
		w.q.Leave(&j.Request, w.at)
	}
	for _, j := range w.work {
		j.charge.End(w.at)
	}
	if n := len(w.q.keys) + len(w.q.flows) + len(w.q.lanes) + len(w.q.ready) + len(w.q.aged) + w.q.Depth(); n != 0 {
		w.late = "something is left"
	}
	var had []float64
	for _, t := range tenants {
		if t.light == 0 {
			had = append(had, t.had)
		}
	}
	return jain(had), w.late
}

// greedy are equal keys that always have requests that wait, of all sorts.
func greedy(chance *rand.Rand) (all []*tenant) {
	for i := range 2 + chance.IntN(5) {
		t := &tenant{name: fmt.Sprint("k", i), lanes: 1, clients: 8 + chance.IntN(30), prefill: .01 + chance.Float64()*.2,
			place: .05 + chance.Float64()*.8, lies: float64(chance.IntN(2)), leaves: float64(chance.IntN(2)) * .3}
		if chance.IntN(3) == 0 { // many models
			t.lanes = 5 + chance.IntN(30)
			t.clients = 4 * t.lanes
		}
		all = append(all, t)
	}
	return all
}

// TestTenants: equal keys that always wait get equal seconds of places and prefill, whatever they ask for, and a key that
// asks for little waits for starve and one service at most, also below a class that takes all it can get. Beside another
// key that waits for starve in many lanes it is one round of turns more.
func TestTenants(t *testing.T) {
	unfair, late := 0, 0
	play := func(mutant string, runs int) (what string) {
		unfair, late = 0, 0
		for seed := range uint64(runs) {
			chance := rand.New(rand.NewPCG(5, seed))
			if j, _ := live(mutant, seed, 5*time.Second, greedy(chance)); j < .95 {
				unfair++
				what = fmt.Sprintf("seed %d: Jain's index is %.3f", seed, j)
			}
			flood := &tenant{name: "flood", class: 1, lanes: 1 + chance.IntN(3), clients: 6, prefill: .01,
				place: .1 + chance.Float64(), lies: 1}
			light := &tenant{name: "light", lanes: 1, clients: 1, prefill: .1, place: chance.Float64(), light: 1}
			many := &tenant{name: "many", lanes: 20, clients: 60, prefill: .01, place: .1, lies: 1}
			quick := &tenant{name: "quick", class: 1, lanes: 1 + chance.IntN(3), clients: 6, prefill: .01, place: .1, lies: 1}
			small := &tenant{name: "light", lanes: 1, clients: 1, prefill: .01, place: .1, light: 1 + ordered}
			for i, all := range [][]*tenant{{flood, light}, {quick, small, many}} {
				if i > 0 && seed%4 > 0 {
					continue
				}
				if _, l := live(mutant, seed, 8*time.Second, all); l != "" {
					late++
					what = fmt.Sprintf("seed %d: %s", seed, l)
				}
			}
		}
		return what
	}
	if what := play("", 60); what != "" {
		t.Errorf("%d runs are unfair, and in %d somebody waits: %s", unfair, late, what)
	}
	for _, mutant := range []string{"a lane is a key", "places cost nothing", "nobody is charged for what comes",
		"nobody goes before others", "who starves goes before others again and again"} {
		what := play(mutant, 15)
		t.Logf("%s: %d unfair, %d late: %s", mutant, unfair, late, what)
		if what == "" {
			t.Errorf("nothing shows that %s", mutant)
		}
	}
}

// BenchmarkLanes: a turn costs the same however many lanes there are, about, of one key or of as many.
func BenchmarkLanes(b *testing.B) {
	for _, lanes := range []int{1, 10_000} {
		for _, keys := range []int{1, 10_000} {
			b.Run(fmt.Sprint(lanes, " lanes, ", keys, " keys"), func(b *testing.B) {
				q := New(Config{MaxRequests: 1 << 20, MaxBytes: 1 << 40, Starve: 5 * time.Second})
				all := make([]Request, 20_000)
				for i := range all {
					all[i] = Request{Lane: uint64(i % lanes), Key: fmt.Sprint(i % keys), Cost: .01 + float64(i%1009)/100}
					q.Enter(&all[i], start)
				}
				b.ReportAllocs()
				for b.Loop() {
					q.Wake()
					q.Blocked(q.Next(start))
					r := q.Next(start)
					if r == nil { // the only lane
						q.Wake()
						r = q.Next(start)
					}
					q.Served(r, start)
					r.Entered = time.Time{}
					q.Enter(r, start)
				}
			})
		}
	}
}
