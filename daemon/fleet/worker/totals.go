package worker

import "github.com/warmpath/warmpath/daemon/fleet/judge"

// totals counts the outcomes at a worker.
type totals struct {
	answered, failed, broken, refused, busy, denied, ejected, left, restarts, preempts uint64
}

// count counts how an exchange ended.
func (t *totals) count(k judge.Kind) {
	switch k {
	case judge.Answered:
		t.answered++
	case judge.Failed, judge.Dying:
		t.failed++
	case judge.Broken, judge.Late:
		t.broken++
	case judge.Refused:
		t.refused++
	case judge.Busy:
		t.busy++
	case judge.Denied:
		t.denied++
	}
}
