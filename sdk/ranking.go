package sdk

import "math"

// Ranking keeps the best few workers of one request: the choice and its alternatives. The zero value is empty. A full
// sort of 256 workers would cost more than scoring them, and failover does not go that far down.
//
//	var k sdk.Ranking
//	for i := range workers {
//		k.Enter(i, &workers[i], cost(&workers[i]))
//	}
//	return k.Choose(r)
type Ranking struct {
	at [1 + Alternatives]rankedWorker
	n  int
}

type rankedWorker struct {
	cost   float64
	worker *Worker
	row    int
}

// Enter ranks worker i, w, at cost; the smallest is best. Enter workers by ascending index. Ties go to the fewest in
// flight, then the fewest sent, each per unit of weight, then the index. A cost that is no number, as 0/0, is the
// worst, and the router's log says so.
func (k *Ranking) Enter(i int, w *Worker, cost float64) {
	if k.n < len(k.at) || !(cost > k.at[len(k.at)-1].cost) { // NaN too
		k.insert(rankedWorker{cost, w, i})
	}
}

func (k *Ranking) insert(p rankedWorker) {
	if math.IsNaN(p.cost) { // it compares with nothing: the first would keep all others out
		Log(Warn, "a cost is no number, as 0/0 gives: its worker is ranked last")
		p.cost = math.Inf(1)
	}
	i := k.n
	if i < len(k.at) {
		k.n++
	} else {
		i--
		if !p.before(&k.at[i]) {
			return
		}
	}
	for ; i > 0 && p.before(&k.at[i-1]); i-- {
		k.at[i] = k.at[i-1]
	}
	k.at[i] = p
}

// before reports whether p's worker is better than q's. The last tie needs no test, as p was entered later.
func (p *rankedWorker) before(q *rankedWorker) bool {
	if p.cost != q.cost {
		return p.cost < q.cost
	}
	a, b := PerWeight(float64(p.worker.InFlight), p.worker), PerWeight(float64(q.worker.InFlight), q.worker)
	if a != b {
		return a < b
	}
	return PerWeight(float64(p.worker.Sent), p.worker) < PerWeight(float64(q.worker.Sent), q.worker)
}

// Choose returns the best worker as the decision, with the others as its alternatives in order; [Decline] if no worker
// was entered.
func (k *Ranking) Choose(r *Request) Decision {
	if k.n == 0 {
		return Decline
	}
	for i := 1; i < k.n; i++ {
		r.Then(k.at[i].row)
	}
	return To(k.at[0].row)
}

// PerWeight is x per unit of w's configured weight; a weight that is not above zero counts as 1.
func PerWeight(x float64, w *Worker) float64 {
	if w.Weight > 0 && w.Weight != 1 {
		return x / float64(w.Weight)
	}
	return x
}

// SlowStart reports whether w came back a short while ago: send it little. It is [Worker.SlowStart] for loops over the
// workers: the compiler inlines this function into a plugin, and not the method of abi's row, which costs 30 ns there.
func SlowStart(w *Worker) bool { return w.SlowStart() }
