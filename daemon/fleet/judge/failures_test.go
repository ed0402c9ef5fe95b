package judge

import "testing"

// TestFailureShare: the first answers are a mean, and later ones weigh an eighth.
func TestFailureShare(t *testing.T) {
	f := func(answers string, want float64) {
		t.Helper()
		var got failures
		for _, c := range answers {
			switch c {
			case 'x':
				got.add(Failed)
			case '.':
				got.add(Answered)
			case 'b':
				got.add(Broken) // no answer, so it does not count
			}
		}
		near(t, answers, got.share, want, 1e-9)
	}
	f("", 0)
	f("x", 1)
	f("x.", .5)
	f("x..b.", .25)
	f("........", 0)
	f("........x", .125)
	f("........x.", .125*7/8)
	f("xxxxxxxx", 1)
	f("xxxxxxxx.", .875)
}
