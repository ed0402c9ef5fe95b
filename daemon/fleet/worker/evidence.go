package worker

import "github.com/warmpath/warmpath/daemon/fleet/judge"

// What is known against a worker is a list of signs, and no sign is more than what it proves. This file has the signs
// that requests bring; health.go has those of checks, process.go those of a page of metrics.
//
// One request convicts nobody: whatever it shows counts once, and the same request failing alike at a second worker
// takes the count back (Pool.Excuse), as the fault is the request's then.

// cause is the reason for which a breaker is open.
type cause uint8

const (
	none     cause = iota
	failing        // failed answers
	leaving        // answers show that the worker shuts down
	refusing       // it refuses what other workers accept
	causes         // how many there are
)

// proof states what a kind of outcome proves of the worker.
type proof struct {
	words string
	cause cause // for which a worker is set aside
	// requests is how many in a row set the worker aside; 0 = it never is for this.
	requests int
	// compared: an outcome counts only once another worker has accepted the same request (Pool.Confirm).
	compared bool
	// crowds: the worker has as many requests as it can take, for a moment.
	crowds bool
	// check: a health check is wanted at once, as it decides.
	check bool
}

// proofs is the table of signs that requests bring.
//
//	sign      means                               in a row    what is not concluded
//	Failed    it fails                            5           a failure that another worker repeats is the request's
//	Broken    it, or the way to it, breaks        5           the same
//	Refused   nothing listens: death              1           -
//	Leaving   it gives up what it has accepted    3           one may have been aborted by its id, or lost its KV
//	Busy      it is alive, and full               never       it is not sick, and its speed at refusing is no speed
//	Denied    it accepts less than others do      3 compared  most are wrong requests, and those of other kinds
//	                                                          and models may be accepted (see record)
//	Late      its accept queue is full, or a      never       a lost SYN is no death: two late health checks are
//	          packet was lost                                 what counts
//	Dying     its own words                       1           -
var proofs = [...]proof{
	judge.Canceled: {},
	judge.Answered: {},
	judge.Failed:   {words: "failed answer", cause: failing, requests: 5, check: true},
	judge.Broken:   {words: "connection broke", cause: failing, requests: 5, check: true},
	judge.Refused:  {words: "connection refused", check: true},
	judge.Leaving:  {words: "gives up what it accepts", cause: leaving, requests: 3, check: true},
	judge.Busy:     {words: "says that it is busy", crowds: true},
	judge.Denied:   {words: "refuses what others accept", cause: refusing, requests: 3, compared: true},
	judge.Late:     {words: "cannot be connected to", crowds: true, check: true},
	judge.Dying:    {words: "says that it is going", cause: leaving, requests: 1, check: true},
}

// tally counts the requests in a row that brought signs of one cause.
type tally struct {
	n     int
	since float64 // when the first of them ended
}

func (t *tally) add(n int, now float64) {
	if t.n == 0 {
		t.since = now
	}
	t.n += n
}

func (t *tally) takeBack() { t.n = max(0, t.n-1) }

// tallies are an endpoint's, by cause.
type tallies [causes]tally

// good forgets what a good answer disproves. A worker that is leaving still ends what it had before its first sign, so
// that only a later request clears it.
func (t *tallies) good(sent float64) {
	t[failing] = tally{}
	t[refusing] = tally{}
	if sent > t[leaving].since {
		t[leaving] = tally{}
	}
}

// records has what became of an endpoint's requests, by their class.
type records [judge.Classes]record

// accepts reports whether the worker has accepted requests of some class of late and refuses none of them.
func (all *records) accepts(now float64) bool {
	for i := range all {
		if r := &all[i]; r.accepted > 0 && r.refused == 0 && now-r.accepted < acceptedLately {
			return true
		}
	}
	return false
}

// record is what became of the latest requests of one class.
type record struct {
	trusted  bool    // it has accepted one, or other workers agreed with its refusals
	accepted float64 // when the newest one that it accepted was sent; 0 = none was
	refused  int     // in a row, less those in which others agreed
	proven   int     // of them, those that another worker has accepted
	agreed   int     // refusals in a row in which another worker agreed
	since    float64 // when the row began
	hold     hold
}

// hold keeps the requests of a class from a worker that refuses them, while others take them. It ends by an accepted
// request, or as others refuse the same ones. When it is over, one request is its trial.
type hold struct {
	until float64
	back  float64 // its length, doubled by a trial that is refused; 0 = there is none
	tried bool    // a trial was sent
}

const (
	// agreements is how many refusals in a row, each confirmed by another worker, are as good as an accepted request.
	// Else a kind of request that no worker of the fleet has would be sent to two of them each time.
	agreements = 3

	firstHold      = 2.0  // seconds
	acceptedLately = 60.0 // seconds
)

// compareEach is how often, in seconds, a pool compares a refusal of a trusted worker, too: the first refusal of one
// that has lost its key or its model comes as if from nowhere.
const compareEach = 1.0

// doubtful reports whether a refusal that comes now may be the worker's fault: it has accepted nothing of that class
// yet, or refused the request before.
func (r *record) doubtful() bool { return !r.trusted || r.refused > 0 }

// holds reports whether another worker is to get requests of the class now.
func (r *record) holds(now float64) bool { return now < r.hold.until }

// sent records that the worker gets a request of the class.
func (r *record) sent(now float64) {
	if r.hold.back > 0 && now >= r.hold.until {
		r.hold.until, r.hold.tried = now+r.hold.back, true
	}
}

// accept records that the worker accepted a request that was sent at a time. A worker that begins to refuse still
// answers what it had.
func (r *record) accept(sent float64) {
	if sent >= r.since {
		*r = record{trusted: true, accepted: sent}
	}
}

// refuse records a refusal that another worker's answer is compared with. That may take seconds. Until then the quick
// refusals of a worker that has accepted nothing yet, or refuses in a row, would draw all requests.
func (r *record) refuse(now float64) {
	if r.refused == 0 {
		r.since = now
	}
	r.refused++
	switch h := &r.hold; {
	case h.tried:
		h.back = min(maxBackOff, 2*h.back)
		h.until, h.tried = now+h.back, false
	case h.back == 0 && (!r.trusted || r.refused > 1):
		h.until, h.back = now+firstHold, firstHold
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
