package route

// dropBacklogged takes out the rows of workers above max_wait_seconds, unless all are. Only those stay that hold more
// of the prompt than any worker below it: to wait there costs less than to compute the prompt anew, which is work that
// the fleet lacks just then. The worker of the request's session stays too, as its strategy decides whether it does. Of
// prefillers, which come behind the others, it does the same among themselves.
func (f *fleet) dropBacklogged(most float64, bound string) {
	if most <= 0 {
		return
	}
	choices, rows := f.frame.Choices(), len(f.frame.Rows)
	n := f.keepUnder(most, bound, 0, choices, 0)
	all := f.keepUnder(most, bound, choices, rows, n)
	if all == rows {
		return
	}
	f.frame.Rows, f.workers, f.slots, f.frame.WorkerIDs = f.frame.Rows[:all], f.workers[:all], f.slots[:all],
		f.frame.WorkerIDs[:all]
	f.frame.Header.Prefillers = uint32(all - n)
	f.best()
}

// keepUnder moves those of the rows between two places that stay to place n and behind it, and returns the place behind
// these.
func (f *fleet) keepUnder(most float64, bound string, from, to, n int) int {
	rows, best, some := f.frame.Rows, uint32(0), false
	for i := from; i < to; i++ {
		if rows[i].Wait <= most {
			best, some = max(best, rows[i].Matched()), true
		}
	}
	for i := from; i < to; i++ {
		if some && rows[i].Wait > most && rows[i].Matched() <= best && f.workers[i].ID() != bound {
			continue
		}
		if n < i {
			rows[n], f.workers[n], f.slots[n], f.frame.WorkerIDs[n] = rows[i], f.workers[i], f.slots[i], f.frame.WorkerIDs[i]
			if len(f.held.kept) > i {
				f.held.kept[n] = f.held.kept[i]
			}
		}
		n++
	}
	return n
}
