package feed

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/transport/direct"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Config is the configuration of a Feed.
type Config struct {
	Index    *holdings.Index
	Workers  func(now time.Time) []worker.Stats
	Listener *Listener // for workers that dial the router; nil = no listener
	Log      *slog.Logger

	// Hear gets the events of the worker in a slot, without Key, Worker and Now, while Hears reports true. Both nil =
	// nobody wants them.
	Hear  func(slot uint32, events []abi.KVEvent, at time.Time)
	Hears func() bool
}

// Feed is the events of a pool's workers. It is safe for concurrent use.
type Feed struct {
	config Config
	life   context.Context
	end    context.CancelFunc

	mu      sync.Mutex // guards all below
	origins map[string]Origin
	client  *http.Client
	sources map[string]*source // by worker
	asked   map[string]*asked  // by endpoint
	closed  bool
}

// asked is what a worker answered about its sources, or that a question is under way.
type asked struct {
	ranks    map[int]rankSource
	under    bool
	wasUp    bool
	restarts uint64
	next     time.Time // when to ask again, if it gave no answer
	said     string    // the last error, which was logged
}

// New makes a Feed without origins. Close ends it.
func New(c Config) *Feed {
	f := &Feed{config: c, sources: map[string]*source{}, asked: map[string]*asked{}}
	f.life, f.end = context.WithCancel(context.Background())
	f.client = newClient(nil)
	if c.Listener != nil {
		c.Listener.add(f)
	}
	return f
}

// askTime bounds the question to one worker about where it publishes.
const askTime = 3 * time.Second

func newClient(t *tls.Config) *http.Client {
	return direct.Client(&http.Transport{TLSClientConfig: t, DisableKeepAlives: true}, askTime)
}

// Configure sets where the events of the workers are, by their configured ids. Sources whose addresses stay go on; the
// others begin anew.
func (f *Feed) Configure(origins map[string]Origin, t *tls.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.origins = origins
	f.client = newClient(t)
	for id := range f.asked {
		if o, is := origins[id]; !is || o.Events != Auto {
			delete(f.asked, id)
		}
	}
}

// Tick brings the sources in line with the workers that there are. Call it once a second.
func (f *Feed) Tick(now time.Time) {
	stats := f.config.Workers(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	there := make(map[string]bool, len(stats))
	highest := 0 // rank of those that may dial us
	for i := range stats {
		w := &stats[i]
		there[w.ID] = true
		s := f.sources[w.ID]
		at, dial := f.placeOf(w, now)
		if !dial && (at.events != "" || f.origins[w.Endpoint].Events == "") {
			highest = max(highest, w.Rank)
		}
		if s != nil && (s.slot != w.Slot || dial && s.at != at || !dial && s.at.events != "") {
			f.drop(w.ID, s.slot != w.Slot)
			s = nil
		}
		if s == nil && dial {
			s = f.begin(w, at)
			s.run(f.life, s.sub.Run)
		}
		if s != nil {
			s.inspect(w, stats, f.config.Index, now)
			s.forget(now)
		}
	}
	for id := range f.sources {
		if !there[id] {
			f.drop(id, true)
		}
	}
	if d := f.config.Listener; d != nil {
		d.ports.reach(highest, now)
	}
}

// begin makes the source of a worker. The caller runs it.
func (f *Feed) begin(w *worker.Stats, at place) *source {
	s := newSource(&f.config, w.ID, w.Slot, at)
	s.answered = w.Answered
	s.restarts = w.Restarts
	f.sources[w.ID] = s
	return s
}

// drop ends a source. When a worker is gone, its entries are deleted.
func (f *Feed) drop(id string, gone bool) {
	s := f.sources[id]
	delete(f.sources, id)
	s.close()
	if gone {
		f.config.Index.Forget(s.slot)
	}
}

// placeOf returns the address to dial for a worker's events. ok is false without such an address, or if the worker
// dials the router.
func (f *Feed) placeOf(w *worker.Stats, now time.Time) (at place, ok bool) {
	o, configured := f.origins[w.Endpoint]
	if !configured || o.Events == "" {
		return place{}, false
	}
	var err error
	said := o.Events
	if o.Events != Auto {
		at, err = o.placeOf(w.Rank)
	} else if a := f.askedOf(w, &o, now); a.ranks == nil {
		return place{}, false
	} else {
		said = a.ranks[w.Rank].Endpoint
		at, err = placeAmong(a.ranks, &o, w.Rank)
	}
	if err != nil {
		f.complain(w.ID, err)
		return place{}, false
	}
	return at, f.config.Listener == nil || listens(said) || !f.config.Listener.ports.isAt(at.events, w.Rank)
}

// complain logs once what is wrong with a worker's addresses.
func (f *Feed) complain(id string, err error) {
	a := f.asked[id]
	if a == nil {
		a = &asked{}
		f.asked[id] = a
	}
	if a.said != err.Error() {
		a.said = err.Error()
		f.config.Log.Warn("the worker's KV events cannot be had: it is chosen by routed history", "worker", id, "error", err)
	}
}

// askedOf returns what the worker answered about its sources. The router asks when the worker comes up or has
// restarted; the answer before holds until the next.
func (f *Feed) askedOf(w *worker.Stats, o *Origin, now time.Time) *asked {
	a := f.asked[w.Endpoint]
	if a == nil {
		a = &asked{}
		f.asked[w.Endpoint] = a
	}
	if w.Up && (!a.wasUp || a.restarts != w.Restarts) {
		a.next = now
	}
	a.wasUp = w.Up
	a.restarts = w.Restarts
	if !w.Up || a.under || a.next.IsZero() || now.Before(a.next) {
		return a
	}
	a.under = true
	a.next = time.Time{}
	go f.askWorker(w.Endpoint, o.URL, f.client)
	return a
}

// askAgain is the time until the router asks again where a worker publishes, after a question that failed.
const askAgain = 30 * time.Second

func (f *Feed) askWorker(id, url string, client *http.Client) {
	ctx, cancel := context.WithTimeout(f.life, askTime)
	defer cancel()
	ranks, err := ask(ctx, client, url)
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.asked[id]
	if a == nil || f.closed {
		return
	}
	a.under = false
	if err != nil {
		a.next = time.Now().Add(askAgain)
		f.complain(id, err)
		return
	}
	a.ranks = ranks
	a.said = ""
}

// Reset records that a worker's cache was cleared on the router's own request: its event of that comes later.
func (f *Feed) Reset(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sources[id]; s != nil {
		s.sub.Cleared()
	}
}

// Close ends all sources.
func (f *Feed) Close() {
	if f.config.Listener != nil {
		f.config.Listener.remove(f)
	}
	f.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for id := range f.sources {
		f.drop(id, false)
	}
}

// Stats is what is known of the events of one worker.
type Stats struct {
	kvevents.Stats
	Endpoint string // where they come from; "" = the worker dials us
	Doubt    string // why its view is not believed though its events come; "" = nothing speaks against it
	Live     bool   // the rows believe the view
	Held     holdings.Stats
}

// Of returns the Stats of a worker's events. ok is false if none are configured, and none come.
func (f *Feed) Of(id string) (st Stats, ok bool) {
	f.mu.Lock()
	s := f.sources[id]
	f.mu.Unlock()
	if s == nil {
		return Stats{}, false
	}
	st = Stats{Stats: s.sub.Stats(), Endpoint: s.at.events, Held: f.config.Index.Worker(s.slot)}
	_, st.Doubt = s.entry.standing()
	st.Live = st.Held.Live
	return st, true
}
