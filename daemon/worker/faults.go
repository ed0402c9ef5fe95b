package worker

// faults is the share of a worker's latest answers that were failures: the mean of its first ones, then one in which
// each answer weighs an eighth.
type faults struct {
	share float64
	n     int // answers, up to faultWindow
}

const (
	faultWindow = 8
	// often is above one failure behind eight good answers, which any request may cause, and below two.
	often = 0.2
	// alone is how many times the others' share a worker's must be.
	alone = 2
)

func (f *faults) add(k Kind) {
	switch k {
	case Failed:
		*f = f.after(1)
	case Answered:
		*f = f.after(0)
	}
}

// after is f with one more answer: x is 1 if it is a failure.
func (f faults) after(x float64) faults {
	f.n = min(f.n+1, faultWindow)
	f.share += (x - f.share) / float64(f.n)
	return f
}

// FailsAlone reports whether a failed answer that w gives now is taken for its own fault, not for the request's: w
// fails often, and the others that are up far less so.
func (p *Pool) FailsAlone(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := w.faults.after(1).share
	sum, n := 0.0, 0
	for _, o := range p.workers {
		if o != w && o.health.state == up && o.faults.n > 0 {
			sum += o.faults.share
			n++
		}
	}
	return own >= often && own*float64(n) >= alone*sum
}
