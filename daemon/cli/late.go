package cli

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// lateTimes is how often its pool's median a worker's time must be to be marked. The page in a browser has the same
// rule.
const lateTimes = 5

// fewWorkers is how many workers of a pool must have a time before its median is used.
const fewWorkers = 3

// medians are those of a pool's workers with one role: a prefiller's first output is that of a long prompt.
type medians struct{ first, perToken float64 } // seconds; 0 = too few workers have one

func mediansOf(workers []operator.WorkerState, role string) medians {
	of := func(time func(*operator.WorkerState) float64) float64 {
		var all []float64
		for i := range workers {
			if t := time(&workers[i]); t > 0 && workers[i].Labels["role"] == role {
				all = append(all, t)
			}
		}
		if len(all) < fewWorkers {
			return 0
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return medians{
		first:    of(func(w *operator.WorkerState) float64 { return w.TTFT }),
		perToken: of(func(w *operator.WorkerState) float64 { return w.TPOT }),
	}
}

// late reports whether the worker's first output or its tokens come far later than the others'.
func (m medians) late(w *operator.WorkerState) bool {
	return isLate(w.TTFT, m.first) || isLate(w.TPOT, m.perToken)
}

func isLate(time, median float64) bool { return median > 0 && time > lateTimes*median }

// mark writes a ! behind a time that is late.
func mark(text string, time, median float64) string {
	if isLate(time, median) {
		return text + "!"
	}
	return text
}

var marked = regexp.MustCompile(`\b[0-9.]+m?s!`)

// redden returns a page for a terminal, with the marked times in red.
func redden(page []byte) []byte { return marked.ReplaceAll(page, []byte("\x1b[31m$0\x1b[0m")) }

// perToken formats a time per output token in seconds, "-" if none is known.
func perToken(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0fms", 1000*seconds)
}
