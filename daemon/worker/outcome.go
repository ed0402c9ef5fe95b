package worker

import "cmp"

// Kind is how an exchange with a worker ended.
type Kind uint8

// The kinds of Outcome. The zero value is no fault of the worker, so that a deferred End may pass it.
const (
	Canceled Kind = iota // the client left, or the result is unknown
	Answered             // the worker answered, even with a 4xx
	Failed               // 5xx, or a failure hidden in a 200
	Broken               // the connection broke or timed out
	Refused              // nothing listens there
	Leaving              // its answer showed that it shuts down: finish_reason "abort", a bare [DONE]
)

// Outcome describes how a ticket ends.
type Outcome struct {
	Kind    Kind
	Tokens  int    // generated, if known: for TPOT
	Err     string // the error, for the page; no URLs, no prompts
	Stalled bool   // Broken by a pause of the answer: the connection was there
	Partly  bool   // the worker may not have got all of the request, and waited for the rest
}

// why returns the error in words.
func (o *Outcome) why() string {
	return cmp.Or(o.Err, [...]string{
		Canceled: "", Answered: "", Failed: "failed answer", Broken: "connection broke", Refused: "connection refused",
		Leaving: "its answer told that it is going",
	}[o.Kind])
}

// totals counts the outcomes at a worker.
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
