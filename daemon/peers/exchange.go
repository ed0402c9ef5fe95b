package peers

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	beatEvery = time.Second
	// exchangeEvery is the time between two round trips while records come. A record waits for half of it on the mean
	// before it is sent, and as long again before it is read: 25 ms in all.
	exchangeEvery = 25 * time.Millisecond
	// batchFor is how long the first record after a silence waits for others.
	batchFor = 10 * time.Millisecond
	maxBatch = 1 << 20 // bytes of one write a pool
)

// runExchanges exchanges messages with the other routers until ctx ends. While there is anything to send or to receive,
// one round trip in exchangeEvery does both. In a silence, and while Redis is lost, a blocking read waits for new
// entries, and the first record that is queued is sent at once.
func (p *Peers) runExchanges(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	next := time.NewTimer(exchangeEvery)
	defer next.Stop()
	defer p.leaseTimer.Stop()
	var read chan error // the result of the blocking read; nil = none is under way
	defer func() {
		if read != nil {
			<-read
		}
	}()
	silent := true
	for ctx.Err() == nil {
		if read == nil && (silent || !p.health.ok() || p.anyReplayPending()) {
			p.awaitRecord()
			read = make(chan error, 1)
			go func() { read <- p.listenOnce(ctx) }()
		}
		due, queued := next.C, p.queued
		if read != nil {
			due = nil
		} else {
			queued = nil
		}
		select {
		case <-ctx.Done():
		case <-beats.C:
			p.beat(ctx)
		case <-p.leaseTimer.C:
			p.expire(time.Now())
		case err := <-read:
			read, silent = nil, err != nil
			p.due.Store(never)
			next.Reset(exchangeEvery)
		case <-queued:
			wait(ctx, batchFor)
			p.flush(ctx) // the blocking read receives this as well, and ends
			p.due.Store(int64(time.Since(p.began) + exchangeEvery))
		case <-due:
			sent, others, err := p.exchange(ctx, true)
			silent = err != nil || sent+others == 0
			next.Reset(exchangeEvery)
		}
	}
}

// never is a due time: no record is announced, as an exchange comes soon in any case.
const never = math.MaxInt64

// awaitRecord makes sure that the next record which is queued is announced. If one is queued already, it announces it
// now.
func (p *Peers) awaitRecord() {
	p.due.Store(0)
	if slices.ContainsFunc(p.list(), func(m *Member) bool { return m.sender.hasQueued() }) {
		p.announce(time.Now())
	}
}

// announce announces to runExchanges a record that was queued at that time, if it waits for one.
func (p *Peers) announce(at time.Time) {
	if int64(at.Sub(p.began)) < p.due.Load() {
		return
	}
	select {
	case p.queued <- struct{}{}:
	default:
	}
}

// listenOnce listens, and waits a little after a failure.
func (p *Peers) listenOnce(ctx context.Context) error {
	err := p.listen(ctx)
	if err != nil && ctx.Err() == nil {
		p.health.failRead(err)
		wait(ctx, backOff)
	}
	return err
}

// anyReplayPending reports whether any pool has still to read its stream's older entries.
func (p *Peers) anyReplayPending() bool {
	return slices.ContainsFunc(p.list(), (*Member).replayPending)
}

// flush sends all frames that wait, if Redis is there.
func (p *Peers) flush(ctx context.Context) {
	for more := true; more && p.health.ok(); {
		sent, _, _ := p.exchange(ctx, false)
		more = sent > 0 && p.waiting() > 0
	}
}

// transfer is what one exchange sends and reads.
type transfer struct {
	members []*Member // that have frames in it
	batches []batch   // one for each of these
	reading reading
	at      time.Time
}

// add takes up to maxBatch bytes of a pool's frames; its stream keeps about kept bytes.
func (t *transfer) add(m *Member, kept int) {
	if frames := m.sender.Take(maxBatch, t.at); len(frames) > 0 {
		t.members = append(t.members, m)
		t.batches = append(t.batches, batch{stream: m.stream, frames: frames, most: m.entriesToKeep(kept)})
	}
}

// newTransfer takes the frames that wait, and with listen adds a read of the new entries.
func (p *Peers) newTransfer(listen bool) (t transfer) {
	t.at = time.Now()
	all := p.list()
	for _, m := range all {
		if no, _ := m.refused(); !no {
			t.add(m, p.conf.StreamBytes)
		}
	}
	if listen {
		t.reading.of(all)
	}
	return t
}

// applyReply applies the answer to a transfer.
func (p *Peers) applyReply(ctx context.Context, t *transfer, x *exchanged) (sent, others int) {
	for i, m := range t.members {
		if n := x.taken[i]; n > 0 {
			m.sender.Confirm(t.batches[i].frames[:n])
			m.recordWritten(x.last[i])
			sent += n
		}
		if err := x.errs[i]; err != nil && ctx.Err() == nil && !p.restartStream(ctx, m, err) {
			p.recordFailure(m, err, t.at)
		}
	}
	if len(t.reading.members) > 0 && x.readErr == nil {
		others = p.applyEntries(&t.reading, x.got, t.at)
	}
	return sent, others
}

// restartStream deletes a stream that takes no more entries because somebody has written one with the last possible id.
// The stream is then read from its new beginning. The other routers find that by the ids that Redis gives them then. It
// reports whether it did so.
func (p *Peers) restartStream(ctx context.Context, m *Member, why error) bool {
	if !isReply(why) || !strings.Contains(why.Error(), "last possible ID") {
		return false
	}
	if err := p.link.restart(ctx, m.stream); err != nil {
		return false
	}
	m.replayAgain()
	if m.warningDue("restarted", time.Now()) {
		p.log.Warn("history: somebody wrote the last possible id into a pool's stream, after which Redis takes no more: it "+
			"begins anew, without the older messages; keep others from writing to the stream", "pool", m.name,
			"stream", m.stream)
	}
	return true
}

// recordFailure records that Redis took no more frames of a pool. An error for one pool alone does not count against
// Redis.
func (p *Peers) recordFailure(m *Member, err error, at time.Time) {
	if isReply(err) {
		m.markWriteRefused(p.log, err, at)
		if slices.ContainsFunc(p.list(), func(m *Member) bool { no, _ := m.refused(); return !no }) {
			return
		}
	}
	p.health.fail(err, at)
}

// exchange sends the frames that wait, with listen applies new entries, and waits for both.
func (p *Peers) exchange(ctx context.Context, listen bool) (sent, others int, readErr error) {
	t := p.newTransfer(listen)
	if len(t.batches)+len(t.reading.members) == 0 {
		return 0, 0, nil
	}
	x := p.link.exchange(ctx, t.batches, t.reading.streams, t.reading.after)
	sent, others = p.applyReply(ctx, &t, &x)
	return sent, others, x.readErr
}

// waiting returns the number of messages that Redis has not taken yet.
func (p *Peers) waiting() (n int) {
	for _, m := range p.list() {
		n += m.sender.Stats().Waiting
	}
	return n
}
