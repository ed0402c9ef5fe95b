package kvevents

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// asker asks the publisher's replay socket for all from a sequence on, and calls each with every answer until that
// returns false or the end has come.
type asker func(ctx context.Context, from uint64, each func(seq uint64, payload []byte) bool) error

// follower keeps a sink equal to what one publisher holds by its events: in order, without a gap, or cleared. It knows
// no sockets. Only one goroutine at a time may use it, except for the fields that mu guards.
type follower struct {
	sink    Sink
	onState func(State) // called in the order of the sink's calls
	ask     asker       // nil = the publisher has no replay socket
	log     *slog.Logger

	decoder Decoder
	gone    []uint64 // removals of the batch under way that the sink has not got yet, all of goneOf
	goneOf  blocks.Medium
	ledger  *ledger
	whole   bool      // the sink has got everything from the start of the process or its last clearing on
	again   bool      // the view is to be built anew from 0
	patient time.Time // until then what comes is dropped, and then asked for; 0 = it is not
	pause   time.Duration
	retryAt time.Time // of a replay that failed
	retry   time.Duration
	looked  time.Time // when a live batch last came, or it was asked whether one is missing
	gaps    float64   // in a short time
	lastGap time.Time
	topic   string
	lines   map[string]repeated // by their text, of which there are a few

	mu    sync.Mutex // guards stats
	stats Stats
}

func newFollower(sink Sink, ask asker, log *slog.Logger) *follower {
	return &follower{sink: sink, ask: ask, log: log, onState: func(State) {},
		ledger: newLedger(), lines: map[string]repeated{}}
}

// change changes the stats.
func (f *follower) change(do func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(&f.stats)
}

// Stats returns the counts.
func (f *follower) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *follower) state() State { return f.Stats().State }

// enter makes s the state.
func (f *follower) enter(s State) {
	if f.state() == s {
		return
	}
	f.change(func(st *Stats) {
		st.State = s
		st.Since = time.Now()
	})
	f.onState(s)
}

// A source that is in trouble causes the same lines again and again: so many lines of one text are logged in so long.
const (
	someLines = 6
	linesTime = time.Minute
)

type repeated struct {
	since time.Time
	n     int
}

// logLine logs a line unless the same text has been logged often enough.
func (f *follower) logLine(level slog.Level, text string, args ...any) {
	r := f.lines[text]
	if now := time.Now(); now.Sub(r.since) >= linesTime {
		r = repeated{since: now}
	}
	r.n++
	f.lines[text] = r
	if r.n <= someLines {
		f.log.Log(context.Background(), level, text, args...)
	}
}

func (f *follower) warn(text string, args ...any) { f.logLine(slog.LevelWarn, text, args...) }

// note records the topic of a message if it differs from the last one.
func (f *follower) note(topic string) {
	const most = 256
	topic = topic[:min(len(topic), most)]
	if topic != f.topic {
		f.topic = topic
		f.change(func(st *Stats) { st.Topic = topic })
	}
}

// forget clears the sink: what it got may not hold. The state shows that before the sink is empty.
func (f *follower) forget(s State) {
	f.enter(s)
	f.whole = false
	f.change(func(st *Stats) { st.Clears++ })
	f.sink.Clear()
}

// restart forgets a process that has ended.
func (f *follower) restart() {
	f.forget(Replaying)
	f.ledger.reset()
	f.decoder = Decoder{skipped: f.decoder.skipped}
}

// settle enters the state that follows from what is known.
func (f *follower) settle() {
	switch {
	case !f.patient.IsZero():
		f.enter(Gap)
	case f.state() == Behind && f.whole:
	case f.whole:
		f.enter(Live)
	default:
		f.enter(Partial)
	}
}

// skipTo gives up what is missing before seq.
func (f *follower) skipTo(seq uint64) {
	if f.ledger.next > 0 {
		f.forget(Gap)
	}
	f.whole = false
	f.ledger.passOver(seq - 1)
}

// message takes one live message.
func (f *follower) message(ctx context.Context, seq uint64, payload []byte) {
	f.resume(ctx)
	if !f.patient.IsZero() {
		f.change(func(st *Stats) { st.Dropped++ })
		return
	}
	switch f.ledger.judge(seq, payload) {
	case ahead:
		f.bridge(ctx, seq)
		if !f.patient.IsZero() {
			f.change(func(st *Stats) { st.Dropped++ })
			return
		}
	case restarted:
		f.logLine(slog.LevelInfo, "the worker's KV events start again: its view is built anew", "sequence", seq)
		f.change(func(st *Stats) { st.Restarts++ })
		f.restart()
		if f.ask != nil {
			f.rebuild(ctx)
		}
	}
	switch f.ledger.judge(seq, payload) {
	case inOrder:
		f.live(seq, payload)
	case ahead:
		f.skipTo(seq)
		f.live(seq, payload)
	default:
		f.change(func(st *Stats) { st.Duplicates++ })
	}
	f.settle()
}

// resume asks for what was dropped in a pause that is over, and rebuilds the view after a replay that failed.
func (f *follower) resume(ctx context.Context) {
	switch now := time.Now(); {
	case now.Before(f.patient):
	case !f.patient.IsZero():
		f.patient = time.Time{}
		f.connected(ctx)
	case f.again && f.ask != nil && !now.Before(f.retryAt):
		f.rebuild(ctx)
	}
}

// Gaps that are bridged in a short time, and how long a source with more of them is left alone.
const (
	gapBurst    = 5
	gapRefill   = 2 * time.Second
	firstPause  = time.Second
	longestWait = 30 * time.Second
	firstAgain  = 100 * time.Millisecond // after a replay that failed
)

// bridge asks for what is missing before a message. A source with one gap after another may send more than can be
// taken: it is left alone for a while, and then asked for all of that at once.
func (f *follower) bridge(ctx context.Context, seq uint64) {
	from := f.ledger.next
	if f.ask == nil && from == 0 {
		return // the first message ever: what was before it is not known
	}
	f.change(func(st *Stats) { st.Gaps++ })
	if f.ask == nil {
		f.warn("KV events of the worker are missing: its view is cleared; set kv_events_replay, and replay_endpoint "+
			"at the worker", "from", from, "to", seq)
		return
	}
	if f.crowded() {
		f.warn("KV events of the worker are missing again and again: until they are asked for after a pause, it is "+
			"chosen by routed history", "pause", f.pause, "missing", seq-from)
		f.enter(Gap)
		return
	}
	f.enter(Replaying)
	if err := f.replay(ctx, from, func() {}); err == nil && f.whole {
		f.logLine(slog.LevelInfo, "missed KV events of the worker were replayed", "from", from, "to", seq)
	}
}

// crowded counts a gap and reports whether there were too many, in which case it sets the pause: longer each time while
// the publisher no longer has what is missing.
func (f *follower) crowded() bool {
	now := time.Now()
	if since := now.Sub(f.lastGap); since > longestWait {
		f.gaps = 0
		f.pause = 0
	} else {
		f.gaps = max(0, f.gaps-since.Seconds()/gapRefill.Seconds())
	}
	f.lastGap = now
	f.gaps++
	if f.gaps <= gapBurst {
		return false
	}
	if f.whole {
		f.pause = firstPause
	} else {
		f.pause = min(max(2*f.pause, firstPause), longestWait)
	}
	f.patient = now.Add(f.pause)
	return true
}

// live applies a message that has just come.
func (f *follower) live(seq uint64, payload []byte) {
	if seq == 0 {
		f.whole = true
	}
	at := f.apply(seq, payload)
	now := time.Now()
	f.looked = now
	f.change(func(st *Stats) {
		st.LastBatch = now
		if at > 0 {
			st.Lag = now.Sub(time.Unix(0, int64(at*1e9)))
		}
	})
}

// tooOld is the age of a batch from which on the view is out of date, if further batches wait behind it.
const tooOld = 2 * time.Second

// queued takes how many messages wait behind the one that was applied last.
func (f *follower) queued(n int) {
	s := f.Stats()
	switch {
	case s.State == Live && n > 0 && s.Lag > tooOld:
		f.warn("KV events of the worker come faster than they are applied, and wait: until then it is chosen by "+
			"routed history", "lag", s.Lag.Round(time.Millisecond), "waiting", n)
		f.enter(Behind)
	case s.State == Behind && n == 0 && f.whole:
		f.enter(Live)
	}
}

// apply hands the events of one batch on, and returns when it was published.
func (f *follower) apply(seq uint64, payload []byte) (at float64) {
	b, err := f.decoder.Decode(payload, f)
	f.flush()
	f.ledger.note(seq, payload)
	f.change(func(st *Stats) {
		st.Batches++
		st.Events += uint64(b.Events)
		st.Bytes += uint64(len(payload))
		st.Next = seq + 1
		st.Skipped = f.decoder.Skipped()
		if b.HasRank {
			st.Rank = b.Rank
		}
		if err != nil || b.Lost {
			st.Undecodable++
		}
	})
	if err != nil || b.Lost {
		f.warn("KV events of the worker cannot be read: its view is cleared; is this a vLLM of 0.9 to 0.32?",
			"sequence", seq, "bytes", len(payload), "error", err)
		f.forget(Partial)
	}
	return b.At
}

// Store, Remove and Clear make the follower the decoder's sink.

// Store hands s on.
func (f *follower) Store(s *blocks.Stored) {
	f.flush()
	f.sink.Store(s)
}

// mostGone is how many removals are gathered.
const mostGone = 1024

// Remove gathers removals: an engine sends one block an event, and the sink takes many at once in half the time.
func (f *follower) Remove(m blocks.Medium, hashes []uint64) {
	if m != f.goneOf || len(f.gone)+len(hashes) > mostGone {
		f.flush()
		f.goneOf = m
	}
	if len(hashes) > mostGone {
		f.sink.Remove(m, hashes)
		return
	}
	f.gone = append(f.gone, hashes...)
}

// flush hands the gathered removals on.
func (f *follower) flush() {
	if len(f.gone) > 0 {
		f.sink.Remove(f.goneOf, f.gone)
		f.gone = f.gone[:0]
	}
}

// Clear hands the worker's own clearing on: nothing of before is left to be known.
func (f *follower) Clear() {
	f.flush()
	f.whole = true
	f.sink.Clear()
}
