package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Worker is one vLLM instance of a pool. The same value stands for it from the day it is configured until it is
// removed.
type Worker struct {
	slot   uint32
	number uint64 // of its life in the pool: no other worker ever has it
	id     string
	key    uint64
	url    string // with credentials: for requests only
	shown  string // without them: for logs and pages
	scrap  string // metrics URL

	block atomic.Int32 // tokens of a block of its KV cache, as it last said; 0 = never
	flow  atomic.Int64 // nanoseconds from the pool's beginning to the last byte of an answer; 0 = none came

	// All below is guarded by the pool's lock.
	weight   float64
	cost     float64
	labels   map[string]string
	kvConf   int  // configured size of its KV cache in tokens; 0 = by metrics
	capacity int  // size in force; 0 = unknown
	gone     bool // removed by an update
	released bool // and its slot given back
	draining bool // asked to by Drain
	panicked bool // was offered though it is not up: TryBegin lets such requests through
	health   health
	breaker  breaker
	faults   faults
	slow     slowStart
	queue    queue
	flight   flight
	inFlight int
	sent     uint64
	missed   uint64  // added to sent in rows: what others got while it was away
	rel      float64 // m = fleet * rel
	heard    float64 // samples of it, those of long ago counted less
	pace     float64 // prefill seconds per estimated second, as its metrics last told; 0 = never
	paced    float64 // when
	ended    ended
	load     float64 // P-seconds sent, weighted as of Pool.aged
	lately   float64 // requests sent, weighted as of Pool.aged
	ttft     mean
	tpot     mean
	metrics  Metrics
	scraped  float64           // when metrics were read; 0 = never
	process  float64           // when its process began, as last read; kept over death to know a restart
	listing  *listing          // nil = not heard yet: any model may be there
	entries  []json.RawMessage // of listing.ids
	totals   totals
	shownAs  Standing  // its condition
	since    time.Time // when it became that
}

type totals struct {
	answered, failed, broken, refused, ejected, left, restarts uint64
}

// count counts how an exchange ended.
func (t *totals) count(k Kind) {
	switch k {
	case Answered:
		t.answered++
	case Failed:
		t.failed++
	case Broken:
		t.broken++
	case Refused:
		t.refused++
	}
}

func newWorker(s Spec) (*Worker, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// Neither the URL nor url.Parse's error is shown: both may hold a password.
		return nil, fmt.Errorf("worker: worker %q has a url that is not http://host:port or https://host:port; correct its url", s.ID)
	}
	w := &Worker{id: s.ID, rel: 1, shownAs: Starting}
	if w.id == "" {
		w.id = u.Host
	}
	w.url = strings.TrimRight(s.URL, "/")
	w.shown = strings.TrimRight((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
	w.scrap = s.MetricsURL
	if w.scrap == "" {
		w.scrap = w.url + "/metrics"
	}
	w.key = hashKey(w.id)
	return w, nil
}

// hashKey is FNV-1a with splitmix64's last steps: FNV alone leaves ids that differ in the last letter close together,
// and rendezvous hashing needs all bits.
func hashKey(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	z := h.Sum64()
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Slot is the worker's number in its pool, the same for as long as it is configured. A slot is given to another worker
// only after this one was removed and its last request ended.
func (w *Worker) Slot() uint32 { return w.slot }

// ID is the worker's name.
func (w *Worker) ID() string { return w.id }

// BlockTokens is how many tokens a block of the worker's KV cache holds, by its metrics; 0 = not known.
func (w *Worker) BlockTokens() int { return int(w.block.Load()) }

// Key is a hash of the id, the same over restarts and routers.
func (w *Worker) Key() uint64 { return w.key }

// URL is the base URL to send requests to. It may hold credentials: never log it.
func (w *Worker) URL() string { return w.url }

// adopt takes what may change while a worker stays.
func (w *Worker) adopt(s Spec) []event {
	w.weight, w.kvConf = cmp.Or(s.Weight, 1), s.KVTokens
	w.cost, w.labels = cmp.Or(s.Cost, 1), s.Labels
	return w.resize()
}

// resize brings the capacity in force up to date: configured, else as the worker says.
func (w *Worker) resize() []event {
	n := cmp.Or(w.kvConf, w.metrics.Capacity, w.capacity)
	if n == w.capacity {
		return nil
	}
	w.capacity = n
	return []event{{w: w, kind: resized, tokens: n}}
}

// forget drops what is known of the worker's process: it is dead or a new one. Requests that are still counted in
// flight end by their tickets.
func (w *Worker) forget() {
	w.queue.clear()
	w.faults = faults{}
	w.rel, w.load, w.lately = 1, 0, 0
	w.heard, w.pace, w.ended = 0, 0, ended{}
	w.ttft, w.tpot = mean{}, mean{}
	w.metrics, w.scraped = Metrics{}, 0
}

// takes says whether w may get requests, however many it has.
func (w *Worker) takes(now float64) bool {
	return !w.draining && w.keeps(now)
}

// keeps says whether w serves at least the sessions that it has: a drain lets them run on.
func (w *Worker) keeps(now float64) bool { return w.health.state == up && w.breaker.lets(now) }
