package worker

import (
	"fmt"
	"testing"
	"time"
)

// specs names n workers w0, w1, ...
func specs(n int) []Spec {
	s := make([]Spec, n)
	for i := range s {
		s[i] = Spec{ID: fmt.Sprintf("w%d", i), URL: fmt.Sprintf("http://127.0.0.1:%d", 9000+i)}
	}
	return s
}

// upPool is a pool of n workers that are all up and that no loop watches: time is the test's.
func upPool(t testing.TB, n int) *Pool {
	t.Helper()
	p := New(Config{Workers: specs(n)})
	for _, w := range p.workers {
		p.checked(w, p.began, "", false)
	}
	return p
}

// after is the time s seconds after the pool began.
func (p *Pool) after(s float64) time.Time {
	return p.began.Add(time.Duration(s * float64(time.Second)))
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if d := got - want; d > tolerance || d < -tolerance {
		t.Errorf("%s = %v; want %v within %v", what, got, want, tolerance)
	}
}
