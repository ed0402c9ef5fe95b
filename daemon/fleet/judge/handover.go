package judge

import (
	"fmt"
	"math"
	"time"
)

// handover is what is known of a worker as one half of a pair, where one computes the prompt of a request and the other
// its answer. It says nothing of the requests that a worker serves alone.
type handover struct {
	lost  int           // in a row that came to nothing
	since time.Duration // when the first of these ended
	good  time.Duration // when the newest one that succeeded ended; 0 = none did
	hung  bool          // the hold is for a prompt that was not computed in time
	why   string        // there is a hold
	hold  hold
}

// fewLost is how many hand-overs in a row are lost until one of the two workers gets no more of them.
const fewLost = 3

func (o *handover) lose(now time.Duration) {
	if o.lost == 0 {
		o.since = now
	}
	o.lost++
}

// keepOff has the worker paired no more for a while, and reports whether it was not before.
func (o *handover) keepOff(why string, now time.Duration) (begins bool) {
	begins = o.hold.back == 0
	if begins {
		o.hold.begin(now)
	} else {
		o.hold.refused(now)
	}
	o.why = why
	return begins
}

// IsUnpaired reports whether the worker is not to be paired now: its hand-overs fail, and its next trial is not due.
func (h *Health) IsUnpaired(now time.Duration) bool { return !h.handover.hold.isOver(now) }

// Unpaired returns why the worker is not paired, but for a trial now and then, and how long that is apart; "" = it is
// paired.
func (h *Health) Unpaired() (why string, apart time.Duration) {
	return h.handover.why, h.handover.hold.back
}

// PairBreaker returns which prompts of others the worker gets now.
func (h *Health) PairBreaker(now time.Duration) BreakerState {
	switch {
	case h.handover.why == "":
		return Closed
	case h.IsUnpaired(now):
		return Open
	}
	return HalfOpen
}

// SentPaired records that the worker gets one half of a request.
func (h *Health) SentPaired(now time.Duration) { h.handover.hold.sent(now) }

// HandOver records that a hand-over which began at a time has succeeded, and reports whether that ends a hold.
func (h *Health) HandOver(began, now time.Duration) (ends bool) {
	o := &h.handover
	if o.lost > 0 && began < o.since {
		return false
	}
	ends = o.hold.back > 0
	*o = handover{good: now}
	return ends
}

// LoseHandover records that a decoder could not load what a prefiller has computed, and returns which of the two is
// blamed for it; nil = neither yet. It is the decoder if the prefiller has worked with another one since the decoder's
// row of losses began. Else it is the prefiller: a pair that has never worked is not asked for each prompt.
func LoseHandover(prefiller, decoder *Health, now time.Duration) (blamed *Health, begins bool) {
	p, d := &prefiller.handover, &decoder.handover
	p.lose(now)
	d.lose(now)
	switch {
	case d.lost >= fewLost && p.good > d.since:
		return decoder, d.keepOff(fmt.Sprintf("could not load what prefillers had computed, %d times in a row", d.lost), now)
	case p.lost >= fewLost:
		return prefiller, p.keepOff(fmt.Sprintf("decoders could not load what it had computed, %d times in a row", p.lost),
			now)
	}
	return nil, false
}

// WorksOn reports whether the engine has done something since a time: a byte of an answer came, or its metrics have
// moved.
func (h *Health) WorksOn(g *Engine, since time.Duration) bool {
	return g.moved > since || h.flowsSince(since)
}

// MissPrompt records that the worker has not computed the prompt of r in time, and reports whether it is paired no more
// for that: it has done nothing else either, and no hand-over has succeeded.
func (h *Health) MissPrompt(g *Engine, r *Request, now time.Duration) (hangs, begins bool) {
	if r.First > 0 || h.WorksOn(g, r.Sent) || h.handover.good > r.Sent {
		return false, false
	}
	waited := math.Round((now-r.Sent).Seconds()*10) / 10
	begins = h.handover.keepOff(fmt.Sprintf("did not compute a prompt in %v s, nor anything else", waited), now)
	h.handover.hung = h.handover.hung || begins
	return true, begins
}

// MayHang reports whether the worker is not paired since it missed a prompt.
func (h *Health) MayHang() bool { return h.handover.hung }

// Answers records a first byte from the worker, and reports whether it ends a hold: the worker does not hang.
func (h *Health) Answers() (ends bool) {
	ends = h.handover.hung
	if ends {
		h.handover = handover{good: h.handover.good}
	}
	return ends
}
