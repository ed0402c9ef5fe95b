package sdk_test

import (
	"fmt"
	"math"
	"strconv"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// tenants prefers for each tenant's requests the workers of its own, and for the rest those of nobody. It is no wall: a
// header is the client's word, and when those workers fail others get the request. [[keys]] workers is one.
type tenants struct{}

func (tenants) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	own := r.Labeled("tenant", sdk.Header("x-tenant"))
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		if own == 0 && r.Label(w, "tenant") == "" || w.Labels&own != 0 {
			k.Enter(i, w, float64(w.InFlight))
		}
	}
	return k.Choose(r).Because(sdk.ReasonLeast)
}

// Labels of workers and a header of the request, and a fake host that knows them.
func ExampleRequest_Labeled() {
	host := &sdktest.Host{Headers: map[string]string{"x-tenant": "acme"}}
	defer host.Serve()()
	f := sdktest.NewFrame(4).Label(host, 1, "tenant=acme").Label(host, 3, "tenant=acme").Label(host, 2, "tenant=other")
	f.Rows[1].InFlight = 5
	order := make([]uint32, len(f.Rows))
	d := sdk.PickNative(tenants{}, &f.Header, f.Rows, order)
	fmt.Println("acme: worker", d.Row(), "then", order[:f.Header.OrderLen])
	host.Headers = nil
	d = sdk.PickNative(tenants{}, &f.Header, f.Rows, order)
	fmt.Println("nobody: worker", d.Row(), "then", order[:f.Header.OrderLen])
	// Output:
	// acme: worker 3 then [1]
	// nobody: worker 0 then []
}

// A ranking keeps the best few and names them as alternatives. Ties go to the fewest in flight, then the fewest sent.
func ExampleRanking() {
	f := sdktest.NewFrame(5)
	order := make([]uint32, len(f.Rows))
	r := sdk.NewRequest(&f.Header, order)
	var k sdk.Ranking
	for i, cost := range []float64{3, 1, 2, 1, 9} {
		f.Rows[i].InFlight = uint32(10 - i)
		k.Enter(i, &f.Rows[i], cost)
	}
	d := k.Choose(r).Because(sdk.ReasonOwn)
	fmt.Println("worker", d.Row(), "then", r.Order())
	// Output: worker 3 then [1 2 0]
}

// quota lets each tenant send so many requests an hour, over all instances of the module.
type quota struct{ most int64 }

func (q *quota) Configure(o *sdk.Options) error {
	q.most = int64(o.Int("most", 1000))
	return nil
}

func (q *quota) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	hour := r.Now / 3_600e9
	key := "sent/" + strconv.FormatUint(r.Tenant, 16) + "/" + strconv.FormatInt(hour, 10)
	if n, err := sdk.KVAdd(key, 1, 7200); err == nil && n > q.most {
		left := (hour+1)*3600 - r.Now/1e9
		return r.Reject(429, "this hour's requests are used up", int(left))
	}
	return sdk.Decline
}

// What all instances must agree on lives in the store, and a rejection carries what the client needs to know.
func ExampleRequest_Reject() {
	host := &sdktest.Host{}
	defer host.Serve()()
	q, f := &quota{}, sdktest.NewFrame(2)
	fmt.Println(sdktest.Configure(q, map[string]string{"most": "2"}))
	for range 3 {
		r := sdk.NewRequest(&f.Header, nil)
		switch d := q.Route(r, f.Rows); d {
		case sdk.Decline:
			fmt.Println("to whom the host likes")
		case sdk.Reject:
			fmt.Println(r.Rejected())
		}
	}
	// Output:
	// <nil>
	// to whom the host likes
	// to whom the host likes
	// 429 this hour's requests are used up 2800
}

// bandit learns how long each worker takes to its first token, and now and then tries one that seemed slow.
type bandit struct{}

func (bandit) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if r.Chance(.05) {
		return sdk.To(r.Pick(len(workers)))
	}
	best, least := 0, math.Inf(1)
	for i := range workers {
		w := &workers[i]
		if cost := w.Own * float64(1+int64(w.InFlight)); cost < least { // one that is not known costs 0: it is tried
			best, least = i, cost
		}
	}
	return sdk.To(best).Because(sdk.ReasonCost)
}

func (bandit) OnFirstToken(o *sdk.Outcome) {
	mean := sdk.Own(o.Key)
	if mean == 0 {
		mean = float64(o.TTFT)
	}
	_ = sdk.SetOwn(o.Key, mean+.1*(float64(o.TTFT)-mean)) // of a worker that has left there is nothing to learn
}

// A strategy that learns beside the picks keeps a number for each worker: each outcome reaches one instance, and what it
// sets reaches all.
func ExampleFirstTokener() {
	host := &sdktest.Host{}
	defer host.Serve()()
	f := sdktest.NewFrame(3)
	for i, ttft := range []float32{.9, .2, .5} {
		bandit{}.OnFirstToken(&sdk.Outcome{Key: f.Rows[i].Key, TTFT: ttft})
	}
	for i := range f.Rows {
		f.Rows[i].Own = host.Own[f.Rows[i].Key]
	}
	fmt.Println("worker", chosen(bandit{}, f))
	f.Rows[1].InFlight = 4
	fmt.Println("while that one is busy:", chosen(bandit{}, f))
	fmt.Println("wants first tokens:", sdk.WantsOf(bandit{}) != 0)
	// Output:
	// worker 1
	// while that one is busy: 2
	// wants first tokens: true
}

// affine sends each session where its hash says, past workers that are twice as busy as the mean.
type affine struct{}

func (affine) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	place, all := sdk.Hash(sdk.Header("x-user")), 1
	for i := range workers {
		all += int(workers[i].InFlight)
	}
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := -sdk.Place(place, w)
		if int(w.InFlight)*len(workers) > 2*all {
			cost++
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonHash)
}

// Consistent hashing with bounded loads, by a header.
func ExamplePlace() {
	host := &sdktest.Host{Headers: map[string]string{"x-user": "ann"}}
	defer host.Serve()()
	f := sdktest.NewFrame(4)
	home := chosen(affine{}, f)
	fmt.Println("the same again:", chosen(affine{}, f) == home)
	f.Rows[home].InFlight = 9
	fmt.Println("while that one is busy:", chosen(affine{}, f) == home)
	// Output:
	// the same again: true
	// while that one is busy: false
}

// batchFirst adds its own preference to the host's score.
type batchFirst struct{}

func (batchFirst) Wants() sdk.Want { return sdk.WantCost }

func (batchFirst) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	urgent := r.SecondsLeft() < 10 || r.Streams()
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := w.Cost
		if !urgent {
			cost *= float64(1 + w.Price) // who can wait goes where it is cheap
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r)
}

// The host's own score, for a strategy that adds to it.
func ExampleWanter() {
	f := sdktest.NewFrame(2)
	f.Rows[0].Cost, f.Rows[0].Price = 1, 4
	f.Rows[1].Cost, f.Rows[1].Price = 2, .5
	order := make([]uint32, 2)
	fmt.Println("no hurry: worker", sdk.PickNative(batchFirst{}, &f.Header, f.Rows, order).Row())
	f.Header.Deadline = f.Header.Now + 5e9
	fmt.Println("5 s left: worker", sdk.PickNative(batchFirst{}, &f.Header, f.Rows, order).Row())
	// Output:
	// no hurry: worker 1
	// 5 s left: worker 0
}
