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
