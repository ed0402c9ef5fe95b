package lendtest

import "testing"

// TestLend is what a router of two gets of a limit of 10, by what it has taken and what the other holds.
func TestLend(t *testing.T) {
	for _, c := range []struct {
		about         string
		taken, others float64
		wanted        bool
		want          float64
	}{
		{about: "nobody has any", want: 5},
		{about: "half of what nobody holds", taken: 4, others: 2, want: 6},
		{about: "all is taken", taken: 4, others: 6, want: 4},
		{about: "twice of all", taken: 8, others: 12, want: 4},
		{about: "it has more than its part, and another wants some", taken: 8, wanted: true, want: 5},
		{about: "it has less than its part, and another wants some", taken: 2, others: 7, wanted: true, want: 2.5},
	} {
		if lent := Lend(10, c.taken, c.others, c.wanted, 2); lent != c.want {
			t.Errorf("%s: %v; want %v", c.about, lent, c.want)
		}
	}
	if lent := Lend(0, 0, 0, false, 2); lent != 0 {
		t.Errorf("without a limit: %v", lent)
	}
}
