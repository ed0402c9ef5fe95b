package kvevents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// publishedAt is a batch of no events that was published so long ago.
func publishedAt(ago time.Duration) []byte {
	b := append([]byte{0x93}, packReal(float64(time.Now().Add(-ago).UnixNano())/1e9)...)
	return append(b, 0x90, 0)
}

func newTestFollower(ask asker) (*follower, *[]State) {
	f := newFollower(newView(), ask, slog.New(slog.DiscardHandler))
	states := &[]State{}
	f.onState = func(s State) { *states = append(*states, s) }
	return f, states
}

// Old batches with others behind them make the view out of date, until nothing waits.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, states := newTestFollower(nil)
		for i, step := range []struct {
			ago     time.Duration
			waiting int
		}{{0, 5}, {3 * time.Second, 5}, {3 * time.Second, 4}, {3 * time.Second, 0}, {3 * time.Second, 0}} {
			f.message(t.Context(), uint64(i), publishedAt(step.ago))
			f.queued(step.waiting)
		}
		if want := []State{Live, Behind, Live}; !slices.Equal(*states, want) {
			t.Errorf("states %v; want %v", *states, want)
		}
	})
}

// sequence is a publisher of batches without events.
type sequence struct {
	payload []byte
	next    atomic.Uint64
	asked   atomic.Int64
	refuses atomic.Bool
}

func newSequence() *sequence { return &sequence{payload: publishedAt(0)} }

func (p *sequence) answer(_ context.Context, from uint64, each func(uint64, []byte) bool) error {
	p.asked.Add(1)
	if p.refuses.Load() {
		return errors.New("refused")
	}
	for n := from; n < p.next.Load() && each(n, p.payload); n++ {
	}
	return nil
}

// One gap after another is no stream to follow: it is left alone for a pause. What was missed meanwhile is asked for
// then, and the view is kept.
func TestOneGapAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSequence()
		f, _ := newTestFollower(p.answer)
		f.connected(t.Context())
		gap := func() {
			f.message(t.Context(), p.next.Add(2)-1, p.payload)
		}
		for range gapBurst {
			gap()
		}
		if f.state() != Live || f.Stats().Gaps != gapBurst {
			t.Fatalf("%+v", f.Stats())
		}
		clears := f.Stats().Clears
		for range 3 {
			asked, dropped := p.asked.Load(), f.Stats().Dropped
			for range 100 {
				gap()
			}
			if st := f.Stats(); st.State != Gap || st.Dropped < dropped+90 || p.asked.Load() > asked+10 {
				t.Errorf("%d replays, %+v", p.asked.Load()-asked, st)
			}
			time.Sleep(firstPause)
			f.message(t.Context(), p.next.Add(1)-1, p.payload)
			if st := f.Stats(); st.State != Live || st.Next != p.next.Load() || st.Clears != clears {
				t.Errorf("after the pause, at %d: %+v", p.next.Load(), st)
			}
		}
	})
}

// A pause ends without the view where the publisher does not answer, and grows where it has no longer what is missing.
func TestPauseInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSequence()
		f, states := newTestFollower(p.answer)
		f.connected(t.Context())
		crowd := func() {
			for f.patient.IsZero() {
				f.message(t.Context(), p.next.Add(2)-1, p.payload)
			}
		}
		crowd()
		p.refuses.Store(true)
		time.Sleep(firstPause)
		*states = nil
		f.resume(t.Context())
		if slices.Contains(*states, Live) || f.state() == Live {
			t.Errorf("%v: believed with batches missing", *states)
		}
		crowd()
		first := f.pause
		time.Sleep(first)
		f.resume(t.Context())
		crowd()
		if f.pause <= first || f.pause > longestWait {
			t.Errorf("pauses of %v, then %v", first, f.pause)
		}
	})
}

// When a fault is over the view is exact again within two seconds, whether or not more comes.
func TestReturn(t *testing.T) {
	const mark = 2 * time.Second
	for name, fault := range map[string]func(p *sequence, put func(uint64)){
		"gap": func(p *sequence, put func(uint64)) {
			put(p.next.Add(1) - 1)
			time.Sleep(500 * time.Millisecond)
			p.next.Add(3)
		},
		"long gap": func(p *sequence, put func(uint64)) {
			put(p.next.Add(1) - 1)
			for range 1000 {
				p.next.Add(1)
				time.Sleep(10 * time.Millisecond)
			}
		},
		"reorder": func(p *sequence, put func(uint64)) {
			for range 400 {
				next := p.next.Add(2)
				put(next - 1)
				put(next - 2)
				time.Sleep(50 * time.Millisecond)
			}
		},
		"many gaps": func(p *sequence, put func(uint64)) {
			for range 400 {
				put(p.next.Add(2) - 1)
				time.Sleep(50 * time.Millisecond)
			}
		},
		"gap, replay refused": func(p *sequence, put func(uint64)) {
			p.refuses.Store(true)
			put(p.next.Add(2) - 1)
			time.Sleep(500 * time.Millisecond)
			p.refuses.Store(false)
		},
	} {
		for _, more := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", more comes ", more), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newSequence()
					s := New(Config{Sink: newView()})
					s.follow.ask = p.answer
					s.follow.connected(t.Context())
					q := newQueue()
					ctx, cancel := context.WithCancel(t.Context())
					go s.loop(ctx, q)
					put := func(seq uint64) { q.put(nil, seq, p.payload) }
					put(p.next.Add(1) - 1)
					time.Sleep(time.Second)
					fault(p, put)
					for end := time.Now().Add(mark); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						if more {
							put(p.next.Add(1) - 1)
						}
					}
					if st := s.Stats(); st.State != Live || st.Next != p.next.Load() {
						t.Errorf("at %d: %+v", p.next.Load(), st)
					}
					asked := p.asked.Load()
					time.Sleep(5 * nextVerify)
					if p.asked.Load() > asked+8 {
						t.Errorf("asked %d times in %v of silence", p.asked.Load()-asked, 5*nextVerify)
					}
					cancel()
					synctest.Wait()
				})
			})
		}
	}
}

// What is lost after a long silence is asked for when the worker is known to have served.
func TestServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSequence()
		s := New(Config{Sink: newView()})
		s.follow.ask = p.answer
		s.follow.change(func(st *Stats) { st.Connected = true })
		s.follow.connected(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		go s.loop(ctx, newQueue())
		time.Sleep(nextVerify / 2) // between the look of firstVerify and the next, which waits 4/5 of nextVerify at least
		p.next.Add(2)
		asked := p.asked.Load()
		s.Served()
		time.Sleep(10 * time.Millisecond)
		if st := s.Stats(); st.State != Live || st.Next != p.next.Load() {
			t.Errorf("at %d: %+v", p.next.Load(), st)
		}
		s.Served()
		time.Sleep(10 * time.Millisecond)
		if n := p.asked.Load() - asked; n != 1 {
			t.Errorf("asked %d times of what it has just said; want once", n)
		}
		cancel()
		synctest.Wait()
	})
}

// A replay that fails is tried again, later each time, and what comes live is applied meanwhile.
func TestReplayIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		f, _ := newTestFollower(nil)
		f.ask = func(context.Context, uint64, func(uint64, []byte) bool) error {
			asked++
			return errors.New("refused")
		}
		f.connected(t.Context())
		f.message(t.Context(), 0, publishedAt(0)) // 0 is the first: nothing is missing
		if f.state() != Live || asked != 1 {
			t.Errorf("%d replays, %s", asked, f.state())
		}
		for range 100 {
			time.Sleep(time.Second)
			f.resume(t.Context())
		}
		if asked < 4 || asked > 12 || f.state() != Live {
			t.Errorf("%d replays in 100 s, %s", asked, f.state())
		}
	})
}

// calls writes down the calls that it gets.
type calls []string

func (c *calls) Store(s *blocks.Stored)             { *c = append(*c, fmt.Sprint("store ", s.Hashes)) }
func (c *calls) Remove(m blocks.Medium, h []uint64) { *c = append(*c, fmt.Sprint("remove ", m, h)) }
func (c *calls) Clear()                             { *c = append(*c, "clear") }

// Removals one after the other become one, and none passes a store, a clearing, another medium or the batch's end.
func TestRemovalsAreGathered(t *testing.T) {
	removed := func(medium string, hashes ...any) list { return list{"BlockRemoved", list(hashes), medium} }
	batch := pack(list{1.5, list{
		list{"BlockStored", list{1}, nil, list{1, 2}, 2, nil, "GPU"},
		removed("GPU", 1), removed("GPU", 2, 3),
		list{"BlockStored", list{4}, nil, list{1, 2}, 2, nil, "GPU"},
		removed("GPU", 4), removed("CPU", 5), list{"AllBlocksCleared"}, removed("GPU", 6),
	}, 0})
	var got calls
	f := newFollower(&got, nil, slog.New(slog.DiscardHandler))
	f.message(t.Context(), 0, batch)
	want := calls{"store [1]", "remove gpu [1 2 3]", "store [4]", "remove gpu [4]", "remove cpu [5]", "clear",
		"remove gpu [6]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// A batch that comes after it was given up is late. It is not taken for one of a new process, though the ledger had
// another batch in its place.
func TestLateBatch(t *testing.T) {
	f, _ := newTestFollower(nil)
	batch := func(seq uint64) { f.message(t.Context(), seq, publishedAt(time.Duration(seq))) }
	for seq := range uint64(2 * remembered) {
		batch(seq)
	}
	batch(2*remembered + 100)
	for seq := range uint64(100) {
		batch(2*remembered + seq)
	}
	if s := f.Stats(); s.Gaps != 1 || s.Duplicates != 100 || s.Restarts != 0 {
		t.Errorf("%d gaps, %d late batches, %d restarts; want 1, 100 and 0", s.Gaps, s.Duplicates, s.Restarts)
	}
}
