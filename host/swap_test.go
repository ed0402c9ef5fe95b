package host

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestSwapUnderLoad: strategies are replaced while goroutines pick, and no pick is answered by the fallback.
func TestSwapUnderLoad(t *testing.T) {
	h := newHost(t, Config{Slots: 4})
	wasm := wat(t, "tiny")
	load := func() *Strategy {
		s, err := h.Load(ctx, "tiny", wasm, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c := new(Current)
	c.Replace(load())
	var stop atomic.Bool
	var picks, failed atomic.Uint64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			f := frame(16, 3)
			for seq := uint64(0); !stop.Load(); seq++ {
				f.Header.Seq = seq
				picks.Add(1)
				if r := c.Pick(f); r.Fallback != "" || r.Row != int(seq%16) || r.Reason != 9 {
					if failed.Add(1) == 1 {
						t.Errorf("got %+v; want row %d by the module", r, seq%16)
					}
				}
			}
		})
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		<-c.Replace(load())
	}
	stop.Store(true)
	wg.Wait()
	if failed.Load() > 0 || picks.Load() < 1000 {
		t.Errorf("%d of %d picks failed", failed.Load(), picks.Load())
	}
	last := c.Strategy()
	last.Close(ctx)
	last.Close(ctx)
	if r := c.Pick(frame(4, 2)); r.Fallback != "closed" || r.Row != 2 {
		t.Errorf("after Close: %+v; want the fallback", r)
	}
}

// TestHammer: a module that traps on every other request, under load: every pick is answered, and the counts add up.
func TestHammer(t *testing.T) {
	h := newHost(t, Config{Slots: 3, QuarantineAfter: 4, QuarantineFor: 5 * time.Millisecond})
	s := load(t, h, wat(t, "sometimes"), Options{})
	var wg sync.WaitGroup
	const each, workers = 3000, 4
	for w := range workers {
		wg.Go(func() {
			f := frame(8, 2)
			for i := range each {
				f.Header.Random = uint64(i*7+w) | 1<<40
				r := s.Pick(f)
				if r.Row < 0 || len(r.Order) != 8 || r.Fallback != "" && r.Row != 2 || r.Fallback == "" && r.Row != 0 {
					t.Errorf("got %+v", r)
					return
				}
				if i%100 == 0 {
					time.Sleep(time.Millisecond)
					s.Stats()
				}
			}
		})
	}
	wg.Wait()
	want := uint64(each * workers)
	f := frame(8, 2)
	f.Header.Random = 1 << 40
	// A busy machine may have kept the keeper from making instances all the while: it gets its turn now.
	waittest.Until(t, "an answer by the module", func() bool {
		s.Pick(f)
		want++
		return s.Stats().Picks > 0
	})
	st := s.Stats()
	total := st.Picks
	for _, n := range st.Fallbacks {
		total += n
	}
	if total != want || st.Fallbacks["trap"] == 0 {
		t.Errorf("%+v: %d answers; want %d", st, total, want)
	}
}

// TestAskTellsWhoServesNow: a strategy that was replaced and closed before its pick has not picked, and the caller learns
// who to ask. One that was closed and has no successor answers by the fallback.
func TestAskTellsWhoServesNow(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	old, now := load(t, h, wat(t, "tiny"), Options{}), load(t, h, wat(t, "tiny"), Options{})
	c := new(Current)
	c.Replace(old)
	s := c.Strategy()
	<-c.Replace(now)
	if _, next := c.Ask(s, frame(4, 2)); next != now {
		t.Errorf("next is %v; want the one that serves", next)
	}
	if r, next := c.Ask(now, frame(4, 2)); next != nil || r.Fallback != "" || r.Reason != 9 {
		t.Errorf("got %+v, %v", r, next)
	}
	now.Close(ctx)
	if r, next := c.Ask(now, frame(4, 2)); next != nil || r.Fallback != "closed" || r.Row != 2 {
		t.Errorf("got %+v, %v; want the fallback's row", r, next)
	}
}

// TestCloseBesideAReplacement: a daemon that ends while a strategy's instances are being made, or while a replaced one
// is still being closed, waits for them. Their memory is not Go's: a write to it after it is gone ends the process.
func TestCloseBesideAReplacement(t *testing.T) {
	wasm := goGuest(t)
	for range 3 {
		h, err := New(ctx, Config{Slots: 8})
		if err != nil {
			t.Fatal(err)
		}
		old := load(t, h, wasm, Options{})
		old.instances.wanted.Store(8)
		old.wake.ring()
		var c Current
		c.Replace(old)
		now := load(t, h, wasm, Options{Fuel: 2_000_000})
		c.Replace(now)
		beside := make(chan error)
		go func() {
			_, err := h.Load(ctx, "beside", wasm, Options{Fuel: 3_000_000})
			beside <- err
		}()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-beside; err != nil && !errors.Is(err, errClosed) {
			t.Errorf("a module that loads meanwhile: %v", err)
		}
		for _, s := range []*Strategy{old, now} {
			select {
			case <-s.done:
			default:
				t.Error("the host is closed, and a strategy still makes instances")
			}
		}
		if _, err := h.Load(ctx, "late", wasm, Options{}); !errors.Is(err, errClosed) {
			t.Errorf("a module that comes too late: %v", err)
		}
	}
}
