package waittest

import (
	"testing"
	"testing/synctest"
	"time"
)

// failing notes that a test has failed. Like a test's own, its Fatalf does not return.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	panic(f)
}

func TestUntil(t *testing.T) {
	f := func(after time.Duration, fails bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			began, test := time.Now(), new(failing)
			defer func() {
				recover()
				if took := time.Since(began); test.failed != fails || took < min(after, patience) || took > patience+time.Second {
					t.Errorf("true after %v: it failed: %v, after %v", after, test.failed, took)
				}
			}()
			Until(test, "time passes", func() bool { return time.Since(began) >= after })
		})
	}
	f(0, false)
	f(time.Second, false)
	f(patience-time.Second, false)
	f(patience+time.Minute, true)
}

func (f *failing) Errorf(string, ...any) { f.failed = true }

// TestAtBest: one good try is enough, and the tenth is the last.
func TestAtBest(t *testing.T) {
	for _, c := range []struct {
		what  string
		took  []time.Duration
		tries int
		fails bool
	}{
		{"the first is good", []time.Duration{2}, 1, false},
		{"the last is good", []time.Duration{3, 9, 4, 3, 3, 3, 3, 3, 3, 1}, 10, false},
		{"none is", []time.Duration{3, 9, 4, 3, 3, 3, 3, 3, 3, 3, 1}, 10, true},
	} {
		test, tries := new(failing), 0
		AtBest(test, "a step", 2, func() time.Duration { tries++; return c.took[tries-1] })
		if tries != c.tries || test.failed != c.fails {
			t.Errorf("%s: %d tries, failed %v; want %d, %v", c.what, tries, test.failed, c.tries, c.fails)
		}
	}
}
