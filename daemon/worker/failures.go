package worker

// failures is the share of a worker's latest answers that were failures: the mean of its first ones, then one in which
// each answer weighs an eighth.
type failures struct {
	share float64
	n     int // answers, up to failureWindow
}

const (
	failureWindow = 8
	// often is above one failure behind eight good answers, which any request may cause, and below two.
	often = 0.2
	// alone is how many times the others' share a worker's must be.
	alone = 2
)

func (f *failures) add(k Kind) {
	switch k {
	case Failed:
		*f = f.after(1)
	case Answered:
		*f = f.after(0)
	}
}

// after returns f with one more answer: x is 1 if it is a failure.
func (f failures) after(x float64) failures {
	f.n = min(f.n+1, failureWindow)
	f.share += (x - f.share) / float64(f.n)
	return f
}

// own reports whether a failure is blamed on this worker, not on the request. It is if the worker fails often and the
// others fail far less. others is the sum of the shares of n other workers.
func (f failures) own(others float64, n int) bool {
	share := f.after(1).share
	return share >= often && share*float64(n) >= alone*others
}
