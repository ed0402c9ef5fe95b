package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// totals counts the outcomes at a worker.
type totals struct {
	answered, failed, broken, refused, busy, denied, ejected, left, restarts, preempts uint64

	restarted []time.Duration // when: the last one, and those of late
}

// Lately is the time in which restarts of a worker are one incident.
const Lately = 5 * time.Minute

// restart counts a new process of the worker.
func (t *totals) restart(now time.Duration) {
	t.restarts++
	t.restarted = append(t.restarted[len(t.restarted)-t.lately(now):], now)
}

// lastRestart returns when the last one was, 0 if there was none.
func (t *totals) lastRestart() time.Duration {
	if len(t.restarted) == 0 {
		return 0
	}
	return t.restarted[len(t.restarted)-1]
}

// lately returns how many restarts there were of late.
func (t *totals) lately(now time.Duration) (n int) {
	for _, at := range t.restarted {
		if now-at < Lately {
			n++
		}
	}
	return n
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
