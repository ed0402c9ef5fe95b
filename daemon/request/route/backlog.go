package route

// dropBacklogged takes out the rows of workers above max_wait_seconds, unless all are. Only those stay that hold more
// of the prompt than any worker below it: to wait there costs less than to compute the prompt anew, which is work that
// the fleet lacks just then. The worker of the request's session stays too, as its strategy decides whether it does.
func (f *fleet) dropBacklogged(most float64, bound string) {
	rows, best, some := f.frame.Rows, uint32(0), false
	for i := range rows {
		if rows[i].Wait <= most {
			best, some = max(best, rows[i].Matched()), true
		}
	}
	if most <= 0 || !some {
		return
	}
	n := 0
	for i := range rows {
		if rows[i].Wait > most && rows[i].Matched() <= best && f.workers[i].ID() != bound {
			continue
		}
		rows[n], f.workers[n], f.slots[n], f.frame.WorkerIDs[n] = rows[i], f.workers[i], f.slots[i], f.frame.WorkerIDs[i]
		if len(f.held.kept) > i {
			f.held.kept[n] = f.held.kept[i]
		}
		n++
	}
	f.frame.Rows, f.workers, f.slots, f.frame.WorkerIDs = rows[:n], f.workers[:n], f.slots[:n], f.frame.WorkerIDs[:n]
	f.best()
}
