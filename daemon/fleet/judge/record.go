package judge

import "time"

// records has what became of an endpoint's requests, by their class.
type records [Classes]record

// accepts reports whether the worker has accepted requests of some class of late and refuses none of them.
func (all *records) accepts(now time.Duration) bool {
	for i := range all {
		if r := &all[i]; r.accepted > 0 && r.refused == 0 && now-r.accepted < acceptedLately {
			return true
		}
	}
	return false
}

// record is what became of the latest requests of one class.
type record struct {
	trusted  bool          // it has accepted one, or other workers agreed with its refusals
	accepted time.Duration // when the newest one that it accepted was sent; 0 = none was
	refused  int           // in a row, less those in which others agreed
	proven   int           // of them, those that another worker has accepted
	agreed   int           // refusals in a row in which another worker agreed
	since    time.Duration // when the row began
	hold     hold
}

// hold keeps the requests of a class from a worker that refuses them, while others take them. It ends by an accepted
// request, or as others refuse the same ones. When it is over, one request is its trial.
type hold struct {
	until time.Duration
	back  time.Duration // its length, doubled by a trial that is refused; 0 = there is none
	tried bool          // a trial was sent
}

// isOver reports whether nothing is kept from the worker now.
func (h *hold) isOver(now time.Duration) bool { return now >= h.until }

// sent makes a request the trial if one is due.
func (h *hold) sent(now time.Duration) {
	if h.back > 0 && h.isOver(now) {
		h.until, h.tried = now+h.back, true
	}
}

// refused makes the hold longer if the trial was refused.
func (h *hold) refused(now time.Duration) {
	if h.tried {
		h.back = min(maxBackOff, 2*h.back)
		h.until, h.tried = now+h.back, false
	}
}

// begin begins a hold.
func (h *hold) begin(now time.Duration) { h.until, h.back = now+firstHold, firstHold }

const (
	// agreements is how many refusals in a row, each confirmed by another worker, are as good as an accepted request.
	// Else a kind of request that no worker of the fleet has would be sent to two of them each time.
	agreements = 3

	firstHold      = 2 * time.Second
	acceptedLately = time.Minute
)

// doubtful reports whether a refusal that comes now may be the worker's fault: it has accepted nothing of that class
// yet, or refused the request before.
func (r *record) doubtful() bool { return !r.trusted || r.refused > 0 }

// holds reports whether another worker is to get requests of the class now.
func (r *record) holds(now time.Duration) bool { return !r.hold.isOver(now) }

// sent records that the worker gets a request of the class.
func (r *record) sent(now time.Duration) { r.hold.sent(now) }

// accept records that the worker accepted a request that was sent at a time. A worker that begins to refuse still
// answers what it had.
func (r *record) accept(sent time.Duration) {
	if sent >= r.since {
		*r = record{trusted: true, accepted: sent}
	}
}

// refuse records a refusal that another worker's answer is compared with. That may take seconds. Until then the quick
// refusals of a worker that has accepted nothing yet, or refuses in a row, would draw all requests.
func (r *record) refuse(now time.Duration) {
	if r.refused == 0 {
		r.since = now
	}
	r.refused++
	if r.hold.back > 0 {
		r.hold.refused(now)
	} else if !r.trusted || r.refused > 1 {
		r.hold.begin(now)
	}
}

// agree takes one refusal back, because another worker refused the same request.
func (r *record) agree() {
	r.refused = max(r.proven, r.refused-1)
	r.agreed++
	switch {
	case r.proven > 0:
	case r.agreed >= agreements:
		*r = record{trusted: true, accepted: r.accepted}
	case r.refused == 0:
		r.since, r.hold = 0, hold{}
	}
}
