package kvevents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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

// Old batches with others behind them make the view that of another time, until nothing waits.
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

// One gap after another is no stream to follow: it is left alone for a pause, which doubles, and then built anew.
func TestOneGapAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		seq := uint64(0)
		f, _ := newTestFollower(nil)
		f.ask = func(_ context.Context, from uint64, each func(uint64, []byte) bool) error {
			asked++
			for n := from; n < seq; n++ {
				if !each(n, publishedAt(0)) {
					break
				}
			}
			return nil
		}
		f.connected(t.Context())
		gap := func() {
			seq += 2
			f.message(t.Context(), seq-1, publishedAt(0))
		}
		for range gapBurst {
			gap()
		}
		if f.state() != Live || f.Stats().Gaps != gapBurst {
			t.Fatalf("%+v", f.Stats())
		}
		gap()
		for range 100 {
			gap()
		}
		if st := f.Stats(); st.State != Gap || st.Dropped != 100 || asked != 1+gapBurst {
			t.Errorf("%d replays, %+v", asked, st)
		}
		time.Sleep(firstPause)
		seq++
		f.message(t.Context(), seq-1, publishedAt(0))
		if st := f.Stats(); st.State != Live || st.Next != seq {
			t.Errorf("after the pause: %+v", st)
		}
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
		if asked < 4 || asked > 10 || f.state() != Live {
			t.Errorf("%d replays in 100 s, %s", asked, f.state())
		}
	})
}

// calls writes down what it is told.
type calls []string

func (c *calls) Store(s *Stored)             { *c = append(*c, fmt.Sprint("store ", s.Hashes)) }
func (c *calls) Remove(m Medium, h []uint64) { *c = append(*c, fmt.Sprint("remove ", m, h)) }
func (c *calls) Clear()                      { *c = append(*c, "clear") }

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
