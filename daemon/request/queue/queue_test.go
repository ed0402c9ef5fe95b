package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

// after returns a time so many seconds behind the start.
func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// roomy takes all that a test enters.
var roomy = Config{MaxRequests: 1 << 20, MaxBytes: 1 << 40, Starve: 5 * time.Second}

// asked is a request of a flow, with its cost.
func asked(key string, cost float64) *Request { return &Request{Key: key, Cost: cost} }

// enter enters requests that must find room.
func enter(t *testing.T, q *Queue, at time.Time, all ...*Request) {
	t.Helper()
	for _, r := range all {
		if out, ok := q.Enter(r, at); !ok || len(out) > 0 {
			t.Fatalf("%q entered: %t, and displaced %d; want room", r.Key, ok, len(out))
		}
	}
}

// serve serves n requests, and names their keys.
func serve(q *Queue, at time.Time, n int) (keys []string) {
	for range n {
		r := q.Next(at)
		if r == nil {
			return append(keys, "nobody")
		}
		q.Served(r, at)
		keys = append(keys, r.Key)
	}
	return keys
}

// wantOrder fails unless the flows are those of a text.
func wantOrder(t *testing.T, got []string, want string) {
	t.Helper()
	if strings.Join(got, " ") != want {
		t.Errorf("served %q; want %q", got, want)
	}
}

func TestOneTurnAtATime(t *testing.T) {
	q := New(roomy)
	enter(t, q, start, asked("a", 1), asked("b", 1))
	r := q.Next(start)
	if r == nil || r.Key != "a" || q.Next(start) != nil {
		t.Fatalf("%v has the turn, and another too; want a alone", r)
	}
	q.Served(r, start)
	q.Served(r, start) // changes nothing
	q.Leave(r, start)
	wantOrder(t, serve(q, start, 2), "b nobody")
	if c := q.Counts(); c.Depth != 0 || c.Bytes != 0 || c.Entered != 2 || c.Served != 2 || len(q.lanes)+len(q.keys)+len(q.flows) != 0 {
		t.Errorf("left behind: %+v, %d lanes", c, len(q.lanes))
	}
}

// A request that leaves gives the turn back, wherever it is.
func TestLeave(t *testing.T) {
	q := New(roomy)
	a, b, c := asked("a", 1), asked("a", 1), asked("a", 1)
	enter(t, q, start, a, b, c)
	q.Leave(b, start)
	if r := q.Next(start); r != a {
		t.Fatal("the first has not the turn")
	}
	q.Leave(a, start)
	q.Leave(a, start)
	if r := q.Next(start); r != c || q.Depth() != 1 {
		t.Errorf("the last has not the turn; %d wait", q.Depth())
	}
}

func TestBlocked(t *testing.T) {
	q := New(roomy)
	other := &Request{Lane: 2, Key: "other", Cost: 1}
	enter(t, q, start, asked("a", 1), asked("a", 2), other)
	r := q.Next(start)
	q.Blocked(r)
	if next := q.Next(start); next != other {
		t.Fatalf("%v has the turn; want the other lane", next)
	}
	q.Blocked(other)
	if q.Next(start) != nil || q.Depth() != 3 {
		t.Fatal("a blocked lane has the turn")
	}
	q.Wake()
	if q.Next(start) != r {
		t.Fatal("who was blocked has lost its place")
	}
	q.Wake() // while it looks: it may have looked too early
	q.Blocked(r)
	if q.Next(start) != r {
		t.Error("room came while a request looked for it, and its lane is blocked")
	}
	q.Blocked(other) // has no turn
	if q.Next(start) != nil {
		t.Error("who had no turn gave one back")
	}
}

// Of one class each flow gets as many seconds, whatever its requests cost, and twice as many for twice the weight.
func TestFairness(t *testing.T) {
	q := New(roomy)
	for range 3000 {
		heavy := asked("heavy", 1)
		heavy.Weight = 2
		enter(t, q, start, asked("long", 10), asked("short", .1), heavy)
	}
	seconds := map[string]float64{}
	for range 1500 {
		r := q.Next(start)
		q.Served(r, start)
		seconds[r.Key] += r.Cost
	}
	if l, s, h := seconds["long"], seconds["short"], seconds["heavy"]; math.Abs(l-s) > 15 || math.Abs(h-2*s) > 15 {
		t.Errorf("%v; want as much of long as of short, and twice as much of heavy", seconds)
	}
}

// A key with a thousand flows gets no more than a key with one, whose request does not wait for a round of them all. The
// flows of the key share what it gets.
func TestFlowsShareWithinTheirKey(t *testing.T) {
	q := New(roomy)
	for i := range 3000 {
		enter(t, q, start, &Request{Key: "many", Flow: fmt.Sprint(i % 1000), Cost: 1}, asked("one", 1))
	}
	served := map[string]int{}
	for i := range 2000 {
		r := q.Next(start)
		q.Served(r, start)
		served[r.Key]++
		served[r.Key+"/"+r.Flow]++
		if i == 1000 {
			light := asked("light", 1)
			enter(t, q, start, light)
			if got := serve(q, start, 4); !slices.Contains(got, "light") {
				t.Errorf("a request of a third key came not within four turns: %q", got)
			}
		}
	}
	if n, m := served["one"], served["many"]; n < 990 || n > 1010 || served["many/7"] != 1 || served["many/999"] != 1 {
		t.Errorf("%d of the key with one flow, %d of the other, %d of one of its flows", n, m, served["many/7"])
	}
}

func TestClasses(t *testing.T) {
	q := New(roomy)
	low := &Request{Key: "low", Class: -1, Cost: 1}
	enter(t, q, start, low, &Request{Key: "low", Class: -1, Cost: 1})
	for range 20 {
		enter(t, q, start, asked("high", 1))
	}
	wantOrder(t, serve(q, after(1), 5), "high high high high high")
	wantOrder(t, serve(q, after(6), 5), "low high high high high")
	wantOrder(t, serve(q, after(10.9), 1), "high")
	wantOrder(t, serve(q, after(11), 2), "low high")
}

// Of many starved flows one has a turn in four, and in their own order.
func TestStarvedTakeTurns(t *testing.T) {
	q := New(roomy)
	for i := range 3 {
		enter(t, q, start, &Request{Key: fmt.Sprint("low", i), Class: -1, Cost: 1})
	}
	for range 20 {
		enter(t, q, start, asked("high", 1))
	}
	wantOrder(t, serve(q, after(6), 9), "high high high low0 high high high low1 high")
}

func TestDeadlines(t *testing.T) {
	c := roomy
	c.ByDeadline = true
	q := New(c)
	for _, r := range []*Request{{Key: "40", Deadline: after(40)}, {Key: "none"}, {Key: "20", Deadline: after(20)},
		{Key: "90", Deadline: after(90)}, {Key: "20 too", Deadline: after(20)}} {
		r.Cost = 1
		name := r.Key
		r.Key = "" // all are of one flow
		enter(t, q, start, r)
		r.Key = name
	}
	wantOrder(t, serve(q, start, 5), "20 20 too 40 none 90")
}

// One that waited before comes before those of its flow that came since.
func TestFirstArrival(t *testing.T) {
	q := New(roomy)
	again := &Request{Lane: 1, Bytes: 7, Entered: after(-5), Cost: 1}
	enter(t, q, start, &Request{Lane: 1, Cost: 1}, again, &Request{Lane: 1, Cost: 1})
	if r := q.Next(start); r != again {
		t.Errorf("%+v has the turn; want the one that came first", r)
	}
}

// Lanes of one class share seconds by the weight of their flows, and one that was empty does not catch up.
func TestLanes(t *testing.T) {
	q := New(roomy)
	in := func(lane uint64, n int, flows ...string) {
		for range n {
			for _, f := range flows {
				enter(t, q, start, &Request{Lane: lane, Key: f, Cost: 1})
			}
		}
	}
	in(1, 300, "a", "b", "c")
	served := map[uint64]int{}
	turns := func(n int) {
		clear(served)
		for range n {
			r := q.Next(start)
			q.Served(r, start)
			served[r.Lane]++
		}
	}
	turns(100)
	in(2, 300, "d")
	if turns(80); served[1] < 59 || served[1] > 61 {
		t.Errorf("%v; want three of lane 1 for each of lane 2", served)
	}
	high := &Request{Lane: 1, Class: 1, Key: "e", Cost: 1}
	enter(t, q, start, high)
	if q.Next(start) != high {
		t.Error("a lane's higher class has not the turn")
	}
}

func TestFull(t *testing.T) {
	small := Config{MaxRequests: 4, MaxBytes: 100}
	f := func(name string, waiting []*Request, r *Request, wantOK bool, want ...int) {
		t.Helper()
		q := New(small)
		enter(t, q, start, waiting...)
		out, ok := q.Enter(r, start)
		var got []int
		for _, d := range out {
			got = append(got, slices.Index(waiting, d))
		}
		if ok != wantOK || !slices.Equal(got, want) {
			t.Errorf("%s: entered: %t, displaced %v; want %t, %v", name, ok, got, wantOK, want)
		}
		n, b := 0, int64(0)
		for _, w := range append(waiting, r) {
			if w.flow != nil {
				n, b = n+1, b+w.Bytes
			}
		}
		if q.Depth() != n || q.Counts().Bytes != b || n > 4 || b > 100 {
			t.Errorf("%s: %d wait with %d bytes, by its own count %d with %d", name, n, b, q.Depth(), q.Counts().Bytes)
		}
	}
	req := func(flow string, class int, bytes int64) *Request {
		return &Request{Key: flow, Class: class, Bytes: bytes}
	}
	four := func() []*Request { return []*Request{req("a", 0, 1), req("a", 0, 1), req("a", 0, 1), req("b", 0, 1)} }
	f("the flow that has the most gives way", four(), req("c", 0, 1), true, 2)
	f("not to itself", four(), req("a", 0, 1), false)
	f("a flow that would have fewer", four(), req("b", 0, 1), true, 2)
	even := []*Request{req("a", 0, 1), req("a", 0, 1), req("b", 0, 1), req("b", 0, 1)}
	f("not to a flow that would have more", even, req("b", 0, 1), false)
	f("a lower class gives way", []*Request{req("a", 0, 1), req("a", 0, 1), req("a", 0, 1), req("b", -1, 1)},
		req("a", 0, 1), true, 3)
	f("not to a lower one", four(), req("c", -1, 1), false)
	bytes := func() []*Request { return []*Request{req("a", 0, 40), req("a", 0, 40), req("b", 0, 20)} }
	f("bytes", bytes(), req("c", 0, 30), true, 1)
	f("bytes of two, of a lower class", bytes(), req("c", 1, 70), true, 1, 0)
	f("bytes that one flow has not", bytes(), req("c", 1, 90), false)
	f("more bytes than there may be", nil, req("c", 0, 101), false)
	f("nobody gives way below the newcomer", bytes(), req("c", 0, 50), false)
	agents := func() []*Request {
		return []*Request{{Key: "a", Flow: "1"}, {Key: "a", Flow: "1"}, {Key: "a", Flow: "2"}, {Key: "b"}}
	}
	f("the key's flow that has the most", agents(), req("c", 0, 1), true, 1)
	f("a flow to another of its key", agents(), &Request{Key: "a", Flow: "3"}, true, 1)
	f("not to a flow that would have as many", agents(), &Request{Key: "a", Flow: "2"}, false)
	f("many flows are one key", []*Request{{Key: "a", Flow: "1"}, {Key: "a", Flow: "2"}, {Key: "b"}, {Key: "b"}},
		&Request{Key: "a", Flow: "3"}, false)
	heavy := four()
	for _, r := range heavy[:3] {
		r.Weight = 10
	}
	f("a weight counts", heavy, req("c", 0, 1), false)
}

// Who has the turn is not displaced: it may be on its way to a worker.
func TestTheTurnIsNotDisplaced(t *testing.T) {
	q := New(Config{MaxRequests: 1, MaxBytes: 100})
	enter(t, q, start, &Request{Class: -1, Key: "a"})
	r := q.Next(start)
	if out, ok := q.Enter(&Request{Class: 1}, start); ok || out != nil {
		t.Errorf("entered: %t, displaced %v; want neither", ok, out)
	}
	q.Blocked(r)
	if out, ok := q.Enter(&Request{Class: 1}, start); !ok || len(out) != 1 {
		t.Errorf("entered: %t, displaced %v; want both", ok, out)
	}
}

func TestConfigure(t *testing.T) {
	q := New(Config{MaxRequests: 4, MaxBytes: 100})
	enter(t, q, start, &Request{Key: "a", Bytes: 60}, &Request{Key: "b", Bytes: 1}, &Request{Key: "b", Bytes: 1})
	q.Configure(Config{MaxRequests: 3, MaxBytes: 1000})
	if out, ok := q.Enter(&Request{Key: "c", Bytes: 1}, start); !ok || len(out) != 1 || out[0].Bytes != 1 {
		t.Errorf("entered: %t, displaced %v; want one of b, which now holds the most", ok, out)
	}
	q.Configure(Config{})
	if _, ok := q.Enter(asked("d", 1), start); ok || q.Depth() != 3 {
		t.Errorf("a queue of none took one; %d wait", q.Depth())
	}
}

// Numbers that are none do no harm.
func TestInsaneNumbers(t *testing.T) {
	q := New(roomy)
	bad := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e308}
	for i, x := range bad {
		enter(t, q, start, &Request{Key: fmt.Sprint(i), Cost: x, Weight: x, Class: math.MinInt, Bytes: math.MinInt64,
			Deadline: after(x)}, &Request{Key: fmt.Sprint(i), Cost: 1, Class: math.MaxInt})
	}
	if n := len(serve(q, after(1), 2*len(bad))); n != 2*len(bad) || q.Depth() != 0 || q.Counts().Bytes != 0 {
		t.Errorf("%d served, %d wait", n, q.Depth())
	}
}

// More names than MaxFlows share one flow.
func TestForgedNames(t *testing.T) {
	q := New(roomy)
	for i := range MaxFlows + 500 {
		enter(t, q, start, &Request{Flow: fmt.Sprint(i), Cost: 1})
	}
	if all := q.Flows(1); len(q.flows) != MaxFlows+1 || all[0].Flow != Others || all[0].Requests != 500 {
		t.Errorf("%d flows, the largest %+v", len(q.flows), all[0])
	}
	if n := q.Position(&Request{Flow: "new", Cost: 1}); n != MaxFlows+500 {
		t.Errorf("%d requests before a name that is one too many; want %d", n, MaxFlows+500)
	}
}

func TestPredict(t *testing.T) {
	q := New(roomy)
	want := func(name string, r *Request, seconds float64, position int) {
		t.Helper()
		if got := q.Predict(r).Seconds(); math.Abs(got-seconds) > .02*seconds || q.Position(r) != position {
			t.Errorf("%s: would wait for %g s, behind %d; want %g, %d", name, got, q.Position(r), seconds, position)
		}
	}
	for range 300 {
		enter(t, q, start, asked("flood", 1))
	}
	want("a rate that nobody knows", asked("new", 1), 0, 1)
	for i := range 100 { // 4 s of prefill a second
		serve(q, after(.25*float64(i+1)), 1)
	}
	want("a flow of its own", asked("new", 1), .25, 1)
	want("behind its own", asked("flood", 1), 50, 200)
	want("a higher class", &Request{Class: 1, Cost: 1}, 0, 0)
	want("a lower class", &Request{Class: -1, Cost: 1}, 50, 200)
	want("a lane of its own", &Request{Lane: 9, Cost: 1}, 0, 0)
	waits, last := asked("new", 1), asked("last", 1)
	enter(t, q, after(25), waits, asked("new", 1))
	want("one that waits", waits, .25, 1)
	want("behind both", asked("new", 1), 1.25, 5)
	enter(t, q, after(25), last)
	q.Leave(last, after(100))
	if p := q.Predict(asked("flood", 1)); p < 200*time.Second {
		t.Errorf("nothing was served for a minute, and it would wait for %v", p)
	}
}
