package metrics

import (
	"math"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/timeline"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// The last hour is kept in spans of half a minute, so that a page can draw it without a Prometheus. A pool takes 20 KB.
const (
	spanLength = timeline.Step
	spans      = timeline.Spans
)

// fallTime is how long a request counts for demand: it fades as e^(-age/fallTime), like the load of a worker.
const fallTime = 30 * time.Second

// Recent counts the events of the last hour for each pool. It is safe for concurrent use.
type Recent struct {
	mu sync.Mutex // guards of, and its hours
	of map[string]*hour
}

// hour is one pool's.
type hour struct {
	spans   [spans]span // an instant has the span with its number modulo spans
	came    fading      // requests
	refused fading      // because there was no worker, or no free place at one
	split   fading      // prompts that were to have a prefiller
	alone   fading      // of these, for want of one
}

// span holds the counts of half a minute.
type span struct {
	number                          int64 // of the half minute since 1970; a span with another number is old
	arrived, refused, failed, fell  uint32
	prompt, known, cached, believed uint64 // tokens; known: of prompts whose cached tokens the engine counted
	output                          uint64
	ttft                            [ttftBuckets]uint32
}

// ttftBuckets count first outputs by powers of the square root of two, from 1 ms to 12 minutes.
const ttftBuckets = 40

// fading is a count that fades.
type fading struct {
	n  float64
	at time.Time
}

func (f *fading) add(n float64, now time.Time) {
	f.n = f.now(now) + n
	f.at = now
}

func (f *fading) now(now time.Time) float64 {
	age := max(0, now.Sub(f.at).Seconds()) / fallTime.Seconds()
	if age < 0.001 {
		return f.n * (1 - age) // e^-age to a millionth, at a tenth of the time
	}
	return f.n * math.Exp(-age)
}

// pool returns a pool's hour. The caller holds r.mu.
func (r *Recent) pool(name string) *hour {
	h := r.of[name]
	if h == nil {
		if r.of == nil {
			r.of = map[string]*hour{}
		}
		h = new(hour)
		r.of[name] = h
	}
	return h
}

// at returns the span of an instant, emptied if its half minute has just begun.
func (h *hour) at(now time.Time) *span {
	number := now.Unix() / int64(spanLength/time.Second)
	s := &h.spans[number%int64(spans)]
	if s.number != number {
		*s = span{number: number}
	}
	return s
}

func (r *Recent) arrived(pool string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pool != "" {
		h := r.pool(pool)
		h.at(now).arrived++
		h.came.add(1, now)
	}
}

func (r *Recent) picked(s *message.Seen, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Fallback != "" && s.Fallback != "decline" {
		r.pool(s.Pool).at(now).fell++
	}
}

// turnedAway counts a refused request. wanting: there was no worker for it, or no free place.
func (r *Recent) turnedAway(pool string, wanting bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pool == "" {
		return
	}
	h := r.pool(pool)
	h.at(now).refused++
	if wanting {
		h.refused.add(1, now)
	}
}

// unanswered counts a request that was sent to workers and got an answer from none of them.
func (r *Recent) unanswered(pool string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool(pool).at(now).failed++
}

func (r *Recent) firstOutput(s *message.Seen, now time.Time) {
	if !s.Stream { // the first byte of an answer in one piece is its last
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool(s.Pool).at(now).ttft[ttftBucket(s.FirstByte)]++
}

func (r *Recent) ended(s *message.Seen, good bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.pool(s.Pool).at(now)
	if !good {
		t.failed++
	}
	if u := &s.Usage; u.Known {
		t.prompt += uint64(max(0, u.Prompt))
		t.output += uint64(max(0, u.Output))
		if u.CachedKnown {
			t.known += uint64(max(0, u.Prompt))
			t.cached += uint64(max(0, u.Cached))
			t.believed += uint64(max(0, s.Believed))
		}
	}
}

// forget removes the last hour of a pool.
func (r *Recent) forget(pool string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, pool)
}

// lacking returns recent counts: of requests that were refused because there was no worker or no place, and of prompts
// that found no prefiller.
func (r *Recent) lacking(pool string, now time.Time) (answers, prompts lack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.of[pool]
	if h == nil {
		return lack{}, lack{}
	}
	return lack{refused: h.refused.now(now), came: h.came.now(now)},
		lack{refused: h.alone.now(now), came: h.split.now(now)}
}

// prefilled counts a prompt that was to have a prefiller. wanting: none was up that had room.
func (r *Recent) prefilled(pool string, wanting bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.pool(pool)
	h.split.add(1, now)
	if wanting {
		h.alone.add(1, now)
	}
}

// ttftBucket returns the bucket of a time.
func ttftBucket(d time.Duration) int {
	return min(ttftBuckets-1, max(0, int(math.Ceil(2*math.Log2(d.Seconds()*1000)))))
}

// Span is half a minute of a pool, for the page's graphs.
type Span struct {
	At       time.Time `json:"at"` // its beginning
	Arrived  uint32    `json:"arrived"`
	Refused  uint32    `json:"refused"`
	Failed   uint32    `json:"failed"`           // a worker's answer was an error, broke off or did not come
	Fallback uint32    `json:"fallback"`         // the strategy failed
	Streams  uint32    `json:"streams"`          // whose first output came
	TTFT50   float64   `json:"ttft_p50_seconds"` // of streams; within a factor of 1.41. 0 = none came
	TTFT90   float64   `json:"ttft_p90_seconds"` // likewise
	TTFT99   float64   `json:"ttft_p99_seconds"` // likewise
	Prompt   uint64    `json:"prompt_tokens"`    // counted by the engines
	Output   uint64    `json:"output_tokens"`    // likewise
	Known    uint64    `json:"known_tokens"`     // of prompts whose cached tokens the engine counted
	Cached   uint64    `json:"cached_tokens"`    // of these
	Believed uint64    `json:"believed_tokens"`  // of these
}

// Hour returns the spans of the last hour of all these pools together, the oldest first, empty ones included.
func (r *Recent) Hour(now time.Time, pools ...string) []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := now.Unix() / int64(spanLength/time.Second)
	all := make([]Span, 0, spans)
	for n := last - int64(spans) + 1; n <= last; n++ {
		sum := span{number: n}
		for _, name := range pools {
			h := r.of[name]
			if h == nil {
				continue
			}
			if s := &h.spans[n%int64(spans)]; s.number == n {
				sum.add(s)
			}
		}
		all = append(all, sum.describe())
	}
	return all
}

// add adds the counts of another pool's span.
func (t *span) add(o *span) {
	t.arrived += o.arrived
	t.refused += o.refused
	t.failed += o.failed
	t.fell += o.fell
	t.prompt += o.prompt
	t.known += o.known
	t.cached += o.cached
	t.believed += o.believed
	t.output += o.output
	for i, n := range o.ttft {
		t.ttft[i] += n
	}
}

func (t *span) describe() Span {
	s := Span{At: time.Unix(t.number*int64(spanLength/time.Second), 0).UTC(), Arrived: t.arrived, Refused: t.refused,
		Failed: t.failed, Fallback: t.fell, Prompt: t.prompt, Output: t.output, Known: t.known, Cached: t.cached,
		Believed: t.believed}
	for _, n := range t.ttft {
		s.Streams += n
	}
	s.TTFT50, s.TTFT90, s.TTFT99 = t.quantile(.5, s.Streams), t.quantile(.9, s.Streams), t.quantile(.99, s.Streams)
	return s
}

// quantile returns the upper bound of the bucket in which the quantile lies, of n first outputs.
func (t *span) quantile(q float64, n uint32) float64 {
	want := uint32(math.Ceil(q * float64(n)))
	for i, c := range t.ttft {
		if want > 0 && c >= want {
			return math.Exp2(float64(i)/2) / 1000
		}
		want -= c
	}
	return 0
}
