package quota

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestShares: what each holds beyond its free part is counted, and all of it comes back.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(100)
		a, b := NewShare(all, 10), NewShare(all, 10)
		f := func(s *Share, total, held int64, want error, took time.Duration) {
			t.Helper()
			start := time.Now()
			if err := s.Grow(total); err != want || all.Held() != held || time.Since(start) != took {
				t.Errorf("Grow(%d): %v after %s, %d held; want %v after %s, %d held", total, err, time.Since(start),
					all.Held(), want, took, held)
			}
		}
		f(a, 10, 0, nil, 0)
		f(a, 80, 70, nil, 0)
		f(a, 50, 70, nil, 0) // it may hold so much already
		f(b, 40, 100, nil, 0)
		f(b, 41, 100, ErrFull, patience+retry)
		f(b, 40, 100, nil, 0)
		go func() {
			time.Sleep(time.Second + time.Millisecond)
			a.Drop()
		}()
		f(b, 110, 100, nil, time.Second+retry)
		b.Drop()
		b.Drop()
		f(b, 11, 1, nil, 0)
		free := NewShare(nil, 0)
		if err := free.Grow(1 << 40); err != nil {
			t.Errorf("without a bound: %v", err)
		}
	})
}

// TestHammer: connections that grow and drop side by side never hold more than they may, and nothing is left.
func TestHammer(t *testing.T) {
	all := New(1000)
	var done sync.WaitGroup
	for n := range 8 {
		done.Go(func() {
			s := NewShare(all, 5)
			for i := range 2000 {
				if s.Grow(int64(5+(i*n)%120)) == nil && all.Held() > 1000 {
					t.Errorf("%d bytes are held", all.Held())
				}
				s.Drop()
			}
		})
	}
	done.Wait()
	if all.Held() != 0 {
		t.Errorf("%d bytes are left", all.Held())
	}
}
