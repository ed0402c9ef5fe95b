package worker

import "cmp"

// Outcome describes how a ticket ends.
type Outcome struct {
	Kind       Kind
	Rejected   bool   // Answered, with an error that is about the request: the worker computed nothing
	Excused    bool   // another worker failed the same request in the same way: the fault is the request's
	OfModel    bool   // Denied: the worker lacks the model, and may accept others
	Uncompared bool   // Denied: the client got it, and no other worker was asked
	Stalled    bool   // Broken by a pause of the answer: the connection was there
	Partly     bool   // the worker may not have got all of the request, and waited for the rest
	Tokens     int    // generated, if known: for TPOT
	Err        string // the error, for the page; no URLs, no prompts
}

// why returns the error in words.
func (o *Outcome) why() string { return cmp.Or(o.Err, proofs[o.Kind].words) }

// totals counts the outcomes at a worker.
type totals struct {
	answered, failed, broken, refused, busy, denied, ejected, left, restarts, preempts uint64
}

// count counts how an exchange ended.
func (t *totals) count(k Kind) {
	switch k {
	case Answered:
		t.answered++
	case Failed, Dying:
		t.failed++
	case Broken, Late:
		t.broken++
	case Refused:
		t.refused++
	case Busy:
		t.busy++
	case Denied:
		t.denied++
	}
}
