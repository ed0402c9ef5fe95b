package kvevents

import (
	"context"
	"log/slog"
	"time"
)

// connected brings the sink up to date over a new connection, and after a pause. A new connection may be to another
// process than the last one. If it cannot find out which process it is, or what was missed, it clears the sink.
func (f *follower) connected(ctx context.Context) {
	f.enter(Replaying)
	f.patient = time.Time{} // what was dropped is asked for
	if f.ask == nil || !f.verify(ctx) {
		if f.ledger.next > 0 {
			f.restart()
		}
		f.whole = false
	}
	f.settle()
}

// verify asks for all from the last applied batch on. If that one is still what it was, the process is the same and
// what follows it was missed; else verify clears the sink and hands everything to it again. It reports whether the
// publisher answered. The caller settles.
func (f *follower) verify(ctx context.Context) bool {
	if f.ledger.next > 0 {
		same, err := f.sameProcess(ctx)
		if err != nil || same {
			return err == nil
		}
		f.logLine(slog.LevelInfo, "the worker's KV events are another process's: its view is built anew")
		f.change(func(st *Stats) { st.Restarts++ })
	}
	return f.rebuild(ctx)
}

// rebuild clears the sink and hands it all that the publisher still has. While the publisher does not answer, nothing
// changes. It reports whether the publisher answered to the end.
func (f *follower) rebuild(ctx context.Context) bool {
	f.again = false
	begun := false
	begin := func() {
		begun = true
		f.restart()
		f.whole = true
	}
	err := f.replay(ctx, 0, begin)
	switch {
	case err == nil && !begun: // the publisher has nothing yet
		begin()
	case err != nil && begun:
		f.whole = false
	}
	f.settle()
	return err == nil
}

// sameProcess applies what comes after the last applied batch. It reports whether that one is still what it was: if
// not, the process is another, and nothing is applied.
func (f *follower) sameProcess(ctx context.Context) (same bool, err error) {
	last := f.ledger.next - 1
	err = f.ask(ctx, last, func(seq uint64, payload []byte) bool {
		if !same {
			same = seq == last && f.ledger.judge(seq, payload) == duplicate
			return same
		}
		f.replayed(seq, payload)
		return true
	})
	f.noteReplay(err)
	return same, err
}

// replay asks for all from a sequence on, calls first before the first answer and applies what comes.
func (f *follower) replay(ctx context.Context, from uint64, first func()) error {
	err := f.ask(ctx, from, func(seq uint64, payload []byte) bool {
		first()
		first = func() {}
		f.replayed(seq, payload)
		return true
	})
	f.noteReplay(err)
	return err
}

// replayed applies one answer of a replay, unless it has been applied.
func (f *follower) replayed(seq uint64, payload []byte) {
	switch f.ledger.judge(seq, payload) {
	case ahead: // the publisher keeps no more
		f.skipTo(seq)
	case inOrder:
	default:
		return
	}
	f.change(func(st *Stats) { st.Replayed++ })
	f.apply(seq, payload)
}

// noteReplay counts a replay. One that failed is tried again after a pause, from 0.
func (f *follower) noteReplay(err error) {
	if err == nil {
		f.retry = 0
		f.change(func(st *Stats) { st.Replays++ })
		return
	}
	f.again = true
	f.retry = min(max(2*f.retry, firstAgain), longestWait)
	f.retryAt = time.Now().Add(f.retry)
	f.change(func(st *Stats) {
		st.Failed++
		st.Problem = err.Error()
	})
	f.warn("the worker's KV events cannot be replayed: a restart or a gap costs its view; check kv_events_replay",
		"error", err)
}
