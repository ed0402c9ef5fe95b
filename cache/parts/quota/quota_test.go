package quota

import (
	"errors"
	"io"
	"strings"
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

// slow gives its pieces one after the other, then the error.
type slow struct {
	pieces []string
	err    error
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, s.err
	}
	n := copy(b, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	if s.pieces[0] == "" {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

// TestReadAll: what comes is read to its end, its bound, the error or what all may hold, and is counted meanwhile.
func TestReadAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		f := func(sizes []int, end error, most int64, want int, held int64, wantErr error) {
			t.Helper()
			from := &slow{err: end}
			for _, n := range sizes {
				from.pieces = append(from.pieces, strings.Repeat("x", n))
			}
			all := New(1 << 20)
			s := NewShare(all, 8<<10)
			text, err := s.ReadAll(from, most)
			if string(text) != strings.Repeat("x", want) || err != wantErr || all.Held() != held {
				t.Errorf("%v: %d bytes, %v, %d held; want %d, %v, %d", sizes, len(text), err, all.Held(), want, wantErr, held)
			}
			s.Drop()
			if all.Held() != 0 {
				t.Errorf("%d bytes are left", all.Held())
			}
		}
		f(nil, io.EOF, 1<<30, 0, 0, nil)
		f([]int{100, 1, 5000}, io.EOF, 1<<30, 5101, 0, nil)
		f([]int{4 << 10}, io.EOF, 1<<30, 4<<10, 0, nil)
		f([]int{9000}, io.EOF, 1<<30, 9000, 8<<10, nil)
		f([]int{5000, 5000}, io.EOF, 7000, 7000, 0, nil)
		f([]int{5000}, broken, 1<<30, 5000, 0, broken)
		f([]int{1 << 20, 1 << 20}, io.EOF, 1<<30, 1<<20, 1<<20-8<<10, ErrFull)
	})
}
