package report

import "math"

// Estimate is a value and half the width of its interval.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"` // 0 also where there is but one seed, which shows nothing of it
}

// Mean returns the mean of v, with twice its standard error.
func Mean(v []float64) Estimate {
	n := float64(len(v))
	if n == 0 {
		return Estimate{}
	}
	var sum, squares float64
	for _, x := range v {
		sum += x
	}
	mean := sum / n
	if n < 2 {
		return Estimate{Value: mean}
	}
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return Estimate{Value: mean, Error: 2 * math.Sqrt(squares/(n-1)/n)}
}

// Ratio returns mean(a) / mean(b), where a[i] and b[i] are of the same seed, with twice the jackknife's error: the
// ratio is taken n times with one pair left out, and the error is the root of (n-1)/n times the sum of the squared
// distances of these from their mean. That the pairs shared their requests narrows it, where a ratio of two
// independent means would not. Slices of different lengths, and a mean of zero, give NaN.
func Ratio(a, b []float64) Estimate {
	n := float64(len(a))
	var sumA, sumB float64
	for i := range a {
		sumA += a[i]
	}
	for i := range b {
		sumB += b[i]
	}
	if len(a) != len(b) || len(a) == 0 || sumB == 0 {
		return Estimate{Value: math.NaN(), Error: math.NaN()}
	}
	if n < 2 {
		return Estimate{Value: sumA / sumB}
	}
	without := make([]float64, len(a))
	var mean, squares float64
	for i := range a {
		without[i] = (sumA - a[i]) / (sumB - b[i])
		mean += without[i] / n
	}
	for _, r := range without {
		squares += (r - mean) * (r - mean)
	}
	return Estimate{Value: sumA / sumB, Error: 2 * math.Sqrt((n-1)/n*squares)}
}

// geometric returns the geometric mean of v, which must be positive.
func geometric(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}
