package limit

import (
	"testing"
	"time"
)

// TestShares are what one of several routers lets in.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		about  string
		s      share
		at     time.Duration
		want   float64
		places float64
	}{
		{about: "one router", want: 10, places: 10},
		{about: "one router by its count", s: share{routers: 1}, want: 10, places: 10},
		{about: "four that have not heard", s: share{routers: 4}, want: 2.5, places: 3},
		{about: "what is lent", s: share{routers: 2, lent: 7.2, heard: began}, want: 7.2, places: 8},
		{about: "nothing is lent", s: share{routers: 2, heard: began}, want: 0, places: 0},
		{about: "more than there is", s: share{routers: 2, lent: 70, heard: began}, want: 10, places: 10},
		{about: "not heard any more", s: share{routers: 2, lent: 7, heard: began}, at: 2 * silence, want: 5, places: 5},
	} {
		at := began.Add(c.at)
		if got, places := c.s.of(10, at), c.s.places(10, at); got != c.want || places != c.places {
			t.Errorf("%s: %v, %v places; want %v and %v", c.about, got, places, c.want, c.places)
		}
	}
}

// routers are two with one key, and what they have in flight.
type routers struct {
	redis
	books   [2]*Book
	keys    [2]*Key
	running [2][]*Spending
}

func newRouters(l Limits) *routers {
	r := &routers{redis: redis{holds: map[int]held{}}}
	for i := range r.books {
		r.books[i] = &Book{}
		r.keys[i] = r.books[i].Configure(map[string]Limits{"team": l}, began)["team"]
		r.books[i].Share(2)
	}
	return r
}

// fill lets requests in at a router until one is refused, and returns how many.
func (r *routers) fill(router int, at time.Duration) (n int) {
	for {
		s, _, ok := take(r.keys[router], at, Tokens{})
		if !ok {
			return n
		}
		r.running[router] = append(r.running[router], s)
		n++
	}
}

// talk lets both send a message.
func (r *routers) talk(at time.Duration) {
	for i := range r.books {
		r.hear(i, r.books[i], began.Add(at))
	}
}

// TestTwoRoutersInFlight: two routers of one key never have more in flight than its limit. One that is busy alone gets
// all places but one, and gives half of them back when the other needs them.
func TestTwoRoutersInFlight(t *testing.T) {
	r := newRouters(Limits{InFlight: 8})
	most := func() {
		t.Helper()
		if n := r.keys[0].inFlight + r.keys[1].inFlight; n > 8 {
			t.Fatalf("%d in flight", n)
		}
	}
	r.talk(0)
	at := time.Duration(0)
	for range 50 {
		r.fill(0, at)
		r.talk(at)
		at += 100 * time.Millisecond
		most()
	}
	if n := r.keys[0].inFlight; n < 7 {
		t.Errorf("the only busy router has %d of 8 places", n)
	}
	for range 100 {
		r.fill(1, at)
		r.talk(at)
		at += 100 * time.Millisecond
		r.running[0][0].End(began.Add(at))
		r.running[0] = r.running[0][1:]
		r.fill(0, at)
		most()
	}
	if a, b := r.keys[0].inFlight, r.keys[1].inFlight; a < 3 || b < 3 {
		t.Errorf("two busy routers have %d and %d of 8 places", a, b)
	}
}

// TestARouterThatComesLater gets its part of the tokens of a key that another router uses up, within a minute.
func TestARouterThatComesLater(t *testing.T) {
	c := newCrowd(Limits{Tokens: 10_000}, 2, 50, 8)
	for i := range c.clients {
		if i%2 == 1 {
			c.clients[i].at = 5 * time.Minute
		}
	}
	c.share()
	c.run(10 * time.Minute)
	c.check(t, 10_000, 10, 1.10)
	if a, b := c.keys[0].tokens.minute.sum, c.keys[1].tokens.minute.sum; b < 2500 || a < 2500 {
		t.Errorf("in the last minute one router let in %.0f tokens and the other %.0f", a, b)
	}
}
