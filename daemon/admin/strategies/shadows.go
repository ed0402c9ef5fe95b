package strategies

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
)

// Shadow is a strategy that decides without effect.
type Shadow struct {
	Module *host.Strategy
	Share  float64  // of the requests that it sees
	Allow  []string // as host.Options.Allow: the header fields that it may see
}

// Report compares a shadow's choices with those of the strategy that served.
type Report struct {
	Strategy  string `json:"strategy"`
	Module    string `json:"module_sha256"`
	Seen      uint64 `json:"seen"`
	Agreed    uint64 `json:"agreed"`   // the same first worker, and the same one named for the prompt
	Declined  uint64 `json:"declined"` // left to the host
	Failed    uint64 `json:"failed"`   // the module's fault
	Rejected  uint64 `json:"rejected"` // that it would have rejected, and the live strategy did not
	Holds     uint64 `json:"holds"`    // that it would have had wait for a better worker, and the live strategy did not
	Held      uint64 `json:"held_tokens"`
	LiveHeld  uint64 `json:"live_held_tokens"` // believed to be held by the chosen worker, of the same requests
	Fuel      uint64 `json:"fuel"`
	LiveFuel  uint64 `json:"live_fuel"`
	Nanos     uint64 `json:"nanoseconds"`
	LiveNanos uint64 `json:"live_nanoseconds"`
}

// Verdict is what the shadows of a pool chose for one request. The zero value has no choice yet.
type Verdict struct{ text atomic.Pointer[string] }

// String lists the shadows that chose another worker, as "mine=gpu-2 other=rejects". The worker that they name for
// the prompt follows, as "mine=gpu-2+gpu-7", or "mine=gpu-2+gpu-2" if it is the same one. It returns "" if all
// agreed, or none has decided yet.
func (v *Verdict) String() string {
	if s := v.text.Load(); s != nil {
		return *s
	}
	return ""
}

// queued bounds the decisions that wait for the shadows of a pool.
const queued = 256

type job struct {
	snapshot *route.Snapshot
	verdict  *Verdict
}

// Shadows runs the shadows of one pool. It is safe for concurrent use.
type Shadows struct {
	queue   bounded.Queue[job]
	free    sync.Pool // of *route.Snapshot
	dropped atomic.Uint64

	seen atomic.Pointer[view] // nil while there is no shadow

	mu  sync.Mutex // held while they decide
	all []*shade
}

// view is what the shadows of a pool together see of its requests.
type view struct {
	names []string // of header fields
	share float64  // of the requests: the largest of theirs
}

// shade is one shadow at work.
type shade struct {
	Shadow
	report Report
}

func newShadows() *Shadows {
	return &Shadows{queue: make(bounded.Queue[job], queued),
		free: sync.Pool{New: func() any { return new(route.Snapshot) }}}
}

// set makes these the shadows. Those before are closed; one whose module is the same goes on counting.
func (p *Shadows) set(all []Shadow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.all
	p.all = nil
	var v view
	for _, s := range all {
		next := &shade{Shadow: s, report: Report{Strategy: s.Module.Name(), Module: s.Module.SHA256()}}
		for _, old := range before {
			if old.report.Strategy == next.report.Strategy && old.report.Module == next.report.Module {
				next.report = old.report
			}
		}
		p.all = append(p.all, next)
		v.share = max(v.share, s.Share)
		for _, a := range s.Allow {
			if name, ok := strings.CutPrefix(a, "headers:"); ok {
				v.names = append(v.names, name)
			}
		}
	}
	p.seen.Store(nil)
	if v.share > 0 {
		p.seen.Store(&v)
	}
	for _, old := range before { // none decides: that takes the lock
		old.Module.Close(context.Background())
	}
}

// Watch queues what c's strategy has decided for the shadows, to decide soon. It returns a Verdict, or nil if they will
// not. It waits for none of them: the request has yet to be sent.
func (p *Shadows) Watch(c *route.Choice) fmt.Stringer {
	v := p.seen.Load()
	if v == nil || rand.Float64() >= v.share {
		return nil
	}
	j := job{snapshot: p.free.Get().(*route.Snapshot), verdict: new(Verdict)}
	j.snapshot.Take(c, v.names)
	if !p.queue.Put(j) {
		p.dropped.Add(1)
		p.free.Put(j.snapshot)
		return nil
	}
	return j.verdict
}

// When there is load, the shadows rest for a while once they have decided all waiting requests. They then wake once for
// some tens of requests and not for each: a wake runs on the processor that serves the request, before its next work,
// and at 20,000 requests/s doubled the time of a request (BenchmarkShadow). A request that ends sooner than the rest
// has no verdict in the access log.
const (
	rest      = 2 * time.Millisecond
	busyGap   = time.Millisecond      // between two wakes, or less,
	busyWakes = 8                     // so many times in a row, is load
	busyBatch = 2 * int(rest/busyGap) // so many requests in a rest still are
)

// Run lets the shadows decide until ctx ends. set(nil) closes them.
func (p *Shadows) Run(ctx context.Context) {
	pause := time.NewTimer(rest)
	defer pause.Stop()
	var last time.Time
	for quick := 0; ; {
		select {
		case <-ctx.Done():
			return
		case j := <-p.queue:
			p.decide(j)
		}
		n := 1
		for j := range p.queue.Waiting(queued) {
			p.decide(j)
			n++
		}
		now := time.Now()
		quick++
		if now.Sub(last) > busyGap {
			quick = 0
		}
		last = now
		if quick < busyWakes && n < busyBatch {
			continue
		}
		pause.Reset(rest)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// decide asks each shadow.
func (p *Shadows) decide(j job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var others []string
	var share float64
	if v := p.seen.Load(); v != nil {
		share = v.share
	}
	for _, s := range p.all {
		if s.Share < share && rand.Float64()*share >= s.Share {
			continue
		}
		if other := s.decide(j.snapshot); other != "" {
			others = append(others, s.report.Strategy+"="+other)
		}
	}
	if len(others) > 0 {
		text := strings.Join(others, " ")
		j.verdict.text.Store(&text)
	}
	p.free.Put(j.snapshot)
}

// decide compares one shadow's choice, and returns the worker that it would have taken, or "" if that is the one that
// the live strategy took.
func (s *shade) decide(n *route.Snapshot) string {
	n.View(s.Module)
	began := time.Now()
	n.Frame.Began = began
	got := s.Module.Decide(&n.Frame)
	took := time.Since(began)
	r, live := &s.report, &n.Result
	r.Seen++
	r.Fuel += uint64(got.Fuel)
	r.LiveFuel += uint64(live.Fuel)
	r.Nanos += uint64(took)
	r.LiveNanos += uint64(live.Took)
	switch {
	case got.Fallback == "decline":
		r.Declined++
		return "declines"
	case got.Fallback != "":
		r.Failed++
		return "fails"
	case got.Hold > 0:
		r.Holds++
		return "holds"
	case (got.Reject != nil) != (live.Reject != nil):
		if got.Reject != nil {
			r.Rejected++
			return "rejects"
		}
	case got.Reject != nil:
		r.Agreed++
		return ""
	}
	r.Held += held(n, got.Row)
	r.LiveHeld += held(n, live.Row)
	if got.Row == live.Row && live.Reject == nil && (got.Pair == live.Pair || !n.Splits) {
		r.Agreed++
		return ""
	}
	if n.Splits && got.Pair > 0 {
		return n.Workers[got.Row] + "+" + n.Workers[got.Pair-1]
	}
	return n.Workers[got.Row]
}

// held returns how many tokens of the prompt the worker of the row was believed to hold.
func held(n *route.Snapshot, row int) uint64 {
	if row < 0 || row >= len(n.Frame.Rows) {
		return 0
	}
	return uint64(float32(n.Frame.Rows[row].Matched()) * n.Frame.Header.BlockTokens)
}

// Reports returns what the shadows have seen, in the order of the configuration, and how many requests they did not
// see since they could not keep up.
func (p *Shadows) Reports() (all []Report, dropped uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		all = append(all, s.report)
	}
	return all, p.dropped.Load()
}
