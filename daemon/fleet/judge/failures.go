package judge

// failures is the share of failures among a worker's latest answers. It is the mean of the first answers; then each
// answer weighs an eighth.
type failures struct {
	share float64
	n     int // answers, up to failureWindow
}

const (
	failureWindow = 8
	// often is the share from which a worker fails often. It is above one failure followed by eight good answers, which
	// any request may cause, and below two.
	often = 0.2
	// alone is how many times the share of the others a worker's share must be.
	alone = 2
)

func (f *failures) add(k Kind) {
	switch k {
	case Failed, Dying:
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

// own reports whether a failure is blamed on this worker, not on the request: the worker fails often, and the others
// fail far less. others is the sum of the shares of n other workers.
func (f failures) own(others float64, n int) bool {
	share := f.after(1).share
	return share >= often && share*float64(n) >= alone*others
}
