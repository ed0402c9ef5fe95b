package lendtest

import "testing"

// TestLend is what a router of two gets of a limit of 10, by what it has taken and what the other holds.
func TestLend(t *testing.T) {
	for _, c := range []struct {
		about string
		told  Told
		want  float64
	}{
		{about: "nobody has any", told: Told{Limit: 10}, want: 5},
		{about: "half of what nobody holds", told: Told{Limit: 10, Taken: 4, Others: 2}, want: 6},
		{about: "all is taken", told: Told{Limit: 10, Taken: 4, Others: 6}, want: 4},
		{about: "twice of all", told: Told{Limit: 10, Taken: 8, Others: 12}, want: 4},
		{about: "it has more than its part, and another wants some", told: Told{Limit: 10, Taken: 8, Wanted: true}, want: 5},
		{about: "it has less than its part, and another wants some", told: Told{Limit: 10, Taken: 2, Others: 7, Wanted: true,
			Tokens: true}, want: 2.5},
		{about: "no limit"},
		{about: "half of three requests", told: Told{Limit: 3}, want: 2},
		{about: "half of three tokens", told: Told{Limit: 3, Tokens: true}, want: 1.5},
		{about: "the one request, which both want", told: Told{Limit: 1, Wants: true, Wanted: true}, want: 1},
		{about: "the one request, which the other wants", told: Told{Limit: 1, Wanted: true}},
	} {
		c.told.Routers = 2
		if lent := Lend(c.told); lent != c.want {
			t.Errorf("%s: %v; want %v", c.about, lent, c.want)
		}
	}
}
