package sdk_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// What follows are wishes of operators, each a whole strategy. TestWishesAreShort holds them to 30 lines.

// chosen is the worker that a strategy chooses.
func chosen(s sdk.Strategy, f *sdktest.Frame) int {
	return sdk.PickNative(s, &f.Header, f.Rows, make([]uint32, len(f.Rows))).Row()
}

// batchTier sends requests with the header "x-tier: batch" to the workers of tier=batch first, and all else to the others;
// when those fail the host tries the rest (Only would forbid it). It needs allow = ["headers:x-tier"], and labels = { tier = "batch" } at the workers.
type batchTier struct{}

func (batchTier) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	batch := r.Labeled("tier", "batch")
	wanted := sdk.Header("x-tier") == "batch"
	var k sdk.Ranking
	for i := range workers {
		if w := &workers[i]; wanted == (w.Labels&batch != 0) {
			k.Enter(i, w, w.Wait)
		}
	}
	return k.Choose(r).Because(sdk.ReasonCost) // without such a worker it declines
}

// A header of the request chooses the workers' tier.
func ExampleHeader() {
	host := &sdktest.Host{Headers: map[string]string{"x-tier": "batch"}}
	defer host.Serve()()
	f := sdktest.NewFrame(3).Label(host, 2, "tier=batch")
	fmt.Println("batch:", chosen(batchTier{}, f))
	host.Headers = nil
	fmt.Println("other:", chosen(batchTier{}, f))
	// Output:
	// batch: 2
	// other: 0
}

// isolated sends what each API key sends to workers of its own alone: those that are labelled for="NAME OF THE KEY". It
// needs on_failure = "reject": else the host chooses while the module fails. Where it must hold whatever strategy serves,
// and for sessions that were bound before, write workers = "for=acme" into [[keys]] instead.
type isolated struct{}

func (isolated) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	name := sdk.Caller()
	var k sdk.Ranking
	for i := range workers {
		if w := &workers[i]; r.Label(w, "for") == name {
			k.Enter(i, w, w.Wait)
		}
	}
	d := k.Choose(r)
	switch {
	case d != sdk.Decline:
		return d.Because(sdk.ReasonCost).Only()
	case r.Labeled("for", name) != 0: // it is down: a worker that has no row keeps its labels
		return r.Unavailable("no worker of this key is up")
	}
	return r.Reject(403, "no worker is set aside for this key", 0)
}

// The name of the caller's key chooses the workers; a key without any is turned away in the strategy's words, and one
// whose workers are down may come again.
func ExampleCaller() {
	host := &sdktest.Host{Caller: "acme"}
	defer host.Serve()()
	f := sdktest.NewFrame(3).Label(host, 1, "for=acme")
	fmt.Println("acme:", chosen(isolated{}, f))
	f.Rows[1].Labels = 0
	fmt.Println("its worker is down:", chosen(isolated{}, f) == int(abi.Reject), f.Header.RejectStatus)
	host.Caller = "nobody"
	fmt.Println("nobody:", chosen(isolated{}, f) == int(abi.Reject), f.Header.RejectStatus)
	// Output:
	// acme: 1
	// its worker is down: true 503
	// nobody: true 403
}

// revision keeps a request that names a revision, as "x-revision: 7", to the workers that are labelled with it. Written
// before a strategy that orders, as strategy = ["revision", "prefixaware"], it confines that one; it needs
// allow = ["headers:x-revision"].
type revision struct{}

func (revision) Filter(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	name := sdk.Header("x-revision")
	if name == "" {
		return sdk.Decline // no opinion: all stay
	}
	return r.Keep(workers, func(w *sdk.Worker) bool { return r.Label(w, "revision") == name })
}

func (revision) Route(*sdk.Request, []sdk.Worker) sdk.Decision { return sdk.Decline }

// A filter confines whichever strategy is behind it. If it keeps nobody, the client gets 503.
func ExampleFilterer() {
	host := &sdktest.Host{Headers: map[string]string{"x-revision": "7"}}
	defer host.Serve()()
	f := sdktest.NewFrame(3).Label(host, 0, "revision=6").Label(host, 2, "revision=7")
	fmt.Println("7:", f.Filter(&testing.T{}, revision{}).Order)
	host.Headers["x-revision"] = "8"
	fmt.Println("8:", f.Filter(&testing.T{}, revision{}).Order)
	host.Headers = nil
	fmt.Println("any:", f.Filter(&testing.T{}, revision{}).Order)
	// Output:
	// 7: [2]
	// 8: []
	// any: [0 1 2]
}

// loaded prefers workers on which the request's LoRA adapter runs, then those that have room for it.
type loaded struct{}

func (loaded) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := w.Wait
		switch {
		case w.Adapter():
		case w.State&abi.RowAdaptersFull != 0:
			cost += 2 // seconds to throw one out and load this one
		default:
			cost++
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

// The worker that runs the adapter, unless over a second of work waits there.
func ExampleWorker_adapter() {
	f := sdktest.NewFrame(3)
	f.Rows[0].State, f.Rows[2].State = abi.RowAdaptersFull, abi.RowAdapter
	fmt.Println("loaded at", chosen(loaded{}, f))
	f.Rows[2].Wait = 1.5
	fmt.Println("busy there:", chosen(loaded{}, f))
	// Output:
	// loaded at 2
	// busy there: 1
}

// byKind sends embeddings and scores to workers of kind=embed and nowhere else, and all else to the others. While the
// module fails the host chooses, unless on_failure is "reject".
type byKind struct{}

func (byKind) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	embed := r.Labeled("kind", "embed")
	small := r.Endpoint == sdk.EndpointEmbeddings || r.Endpoint == sdk.EndpointScore
	var k sdk.Ranking
	for i := range workers {
		if w := &workers[i]; small == (w.Labels&embed != 0) {
			k.Enter(i, w, float64(w.InFlight))
		}
	}
	return k.Choose(r).Because(sdk.ReasonLeast).Only()
}

// The kind of the endpoint chooses the workers.
func ExampleRequest_endpoint() {
	host := &sdktest.Host{}
	defer host.Serve()()
	f := sdktest.NewFrame(2).Label(host, 1, "kind=embed")
	f.Header.Endpoint = sdk.EndpointEmbeddings
	fmt.Println("embeddings:", chosen(byKind{}, f))
	f.Header.Endpoint = sdk.EndpointChat
	fmt.Println("chat:", chosen(byKind{}, f))
	// Output:
	// embeddings: 1
	// chat: 0
}

// patient turns batch traffic (a priority above 0) away while the fleet is nearly full, and sets when to come again.
type patient struct{}

func (patient) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	used, wait := float32(0), workers[0].Wait
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		used += w.KVUsage / float32(len(workers))
		wait = min(wait, w.Wait)
		k.Enter(i, w, w.Wait)
	}
	if r.Priority > 0 && used > .9 {
		return r.Reject(429, "batch traffic waits while the fleet is full", int(wait)+5)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

// Batch traffic is held back, and gets a Retry-After.
func ExampleRequest_priority() {
	f := sdktest.NewFrame(2)
	f.Rows[0].KVUsage, f.Rows[1].KVUsage = .95, .93
	fmt.Println("now:", chosen(patient{}, f))
	f.Header.Priority = 5
	fmt.Println("batch is rejected:", chosen(patient{}, f) == int(abi.Reject), f.Header.RetryAfter)
	// Output:
	// now: 0
	// batch is rejected: true 5
}

// spill fills the cheapest workers first and goes on to dearer ones only where the cheaper have work for a second.
type spill struct{}

func (spill) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := float64(w.Price)
		if w.Wait > 1 {
			cost += 1000 + w.Wait
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

// Own machines before rented ones.
func ExampleWorker_price() {
	f := sdktest.NewFrame(2)
	f.Rows[0].Price, f.Rows[1].Price = 4, 1
	fmt.Println("own:", chosen(spill{}, f))
	f.Rows[1].Wait = 3
	fmt.Println("full:", chosen(spill{}, f))
	// Output:
	// own: 1
	// full: 0
}

// A strategy for each wish has at most 30 lines: its type and its methods.
func TestWishesAreShort(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "example_wishes_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, d := range file.Decls {
		n := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
		switch d := d.(type) {
		case *ast.GenDecl:
			if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
				lines[spec.Name.Name] += n
			}
		case *ast.FuncDecl:
			if d.Recv != nil {
				lines[d.Recv.List[0].Type.(*ast.Ident).Name] += n
			}
		}
	}
	if len(lines) != 7 {
		t.Errorf("%d strategies; want the seven wishes", len(lines))
	}
	for name, n := range lines {
		if n > 30 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}
