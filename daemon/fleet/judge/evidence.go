package judge

import "time"

// Cause is the reason for which a breaker is open.
type Cause uint8

// The values of Cause.
const (
	NoCause   Cause = iota
	Failing         // failed answers
	GoingAway       // answers show that the worker shuts down
	Refusing        // it refuses what other workers accept
	causes          // how many there are
)

// proof states what a kind of outcome proves of the worker.
type proof struct {
	words string
	cause Cause // for which a worker is set aside
	// requests is how many in a row set the worker aside; 0 = it never is for this.
	requests int
	// compared: an outcome counts only once another worker has accepted the same request (Health.Confirm).
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
	Canceled: {},
	Answered: {},
	Failed:   {words: "failed answer", cause: Failing, requests: 5, check: true},
	Broken:   {words: "connection broke", cause: Failing, requests: 5, check: true},
	Refused:  {words: "connection refused", check: true},
	Leaving:  {words: "gives up what it accepts", cause: GoingAway, requests: 3, check: true},
	Busy:     {words: "says that it is busy", crowds: true},
	Denied:   {words: "refuses what others accept", cause: Refusing, requests: 3, compared: true},
	Late:     {words: "cannot be connected to", crowds: true, check: true},
	Dying:    {words: "says that it is going", cause: GoingAway, requests: 1, check: true},
}

// tally counts the requests in a row that brought signs of one cause.
type tally struct {
	n     int
	since time.Duration // when the first of them ended
}

func (t *tally) add(n int, now time.Duration) {
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
func (t *tallies) good(sent time.Duration) {
	t[Failing] = tally{}
	t[Refusing] = tally{}
	if sent > t[GoingAway].since {
		t[GoingAway] = tally{}
	}
}
