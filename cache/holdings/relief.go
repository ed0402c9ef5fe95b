package holdings

import "slices"

// relieve clears workers until the chains are within their bound. A block that no worker holds takes memory as long as
// one below it is held, so a worker could keep one of each long run. The worker that makes others pay for the most
// blocks is cleared first.
func relieve(x *Index) {
	if !x.relieving.TryLock() {
		return // whoever does it goes on until it is enough
	}
	defer x.relieving.Unlock()
	for tries := len(*x.workers.Load()) + 1; tries > 0 && x.Chain() > x.chain; tries-- {
		var worst *worker
		most := 0
		for _, w := range append(slices.Clip(*x.workers.Load()), x.shared.Load()) {
			if w == nil {
				continue
			}
			if n := weight(w); n > most {
				most = n
				worst = w
			}
		}
		if worst == nil {
			return
		}
		worst.mu.Lock()
		if !worst.gone {
			worst.overflow()
		}
		worst.mu.Unlock()
		x.predicted.forget(worst.slot)
	}
}

// weight is what a worker takes of the chains. What it needs and does not hold weighs sixteen times.
func weight(w *worker) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	needs := map[*node]uint16{} // the end of what the worker needs of a run
	for _, at := range w.places {
		if at.h == nil {
			continue
		}
		at.p.mu.RLock()
		need := at.h.top
		for n := at.h.node; n.parent != nil; n = n.parent {
			before := needs[n]
			needs[n] = max(before, need)
			if before > 0 {
				break // and so all above is in
			}
			need = n.at
		}
		at.p.mu.RUnlock()
	}
	sum := 0
	for _, n := range needs {
		sum += int(n)
	}
	return sum + 16*max(0, sum-w.table.n)
}
