package session

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// A router whose wall clock is set forward or back ends no session early, and lets none live on; nor does one that
// meets a session which such a router has opened.
func TestAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			right, wrong := On(store, Config{}), On(store, Config{})
			isSet := func() time.Time { return time.Now().Add(by) }
			began := time.Now()
			if _, err := right.Open(opened("before"), Binding{Worker: "w"}, time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := wrong.Open(opened("after"), Binding{Worker: "w"}, isSet()); err != nil {
				t.Fatal(err)
			}
			wrong.Bind(keyed("key"), "w", isSet())
			check := func(when time.Duration, want Status) {
				t.Helper()
				time.Sleep(time.Until(began.Add(when)))
				for _, id := range []string{"before", "after"} {
					if _, s := right.Peek(opened(id), time.Now()); s != want {
						t.Errorf("set by %v, %s after %v: %v at the other router; want %v", by, id, when, s, want)
					}
					if _, s := wrong.Peek(opened(id), isSet()); s != want {
						t.Errorf("set by %v, %s after %v: %v at the router itself; want %v", by, id, when, s, want)
					}
				}
			}
			check(0, Found)
			check(20*time.Minute-2*time.Second, Found)
			if _, s := wrong.Find(keyed("key"), isSet()); s != Found {
				t.Errorf("a key is %v", s)
			}
			check(20*time.Minute, Expired)
			check(21*time.Minute+time.Second, Unknown)
		})
	}
}

// What a router whose clock is set writes over a session lives as long as the session did.
func TestAChangeByASetClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := On(newMemory(), Config{})
			for _, id := range []string{"closed", "moved"} {
				if _, err := b.Open(opened(id), Binding{Worker: "w1"}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			now := time.Now().Add(by)
			if !b.Close(opened("closed"), now) || b.Rebind(opened("moved"), "w1", "w2", now) != "w2" {
				t.Fatal("a session was taken for ended")
			}
			time.Sleep(19 * time.Minute)
			if got := where(b, opened("closed")) + " " + where(b, opened("moved")); got != "closed w2" {
				t.Errorf("set by %v: %s", by, got)
			}
			time.Sleep(2*time.Minute + time.Second)
			if got := where(b, opened("closed")) + " " + where(b, opened("moved")); got != "unknown unknown" {
				t.Errorf("set by %v, a minute after the end: %s", by, got)
			}
		})
	}
}

// setClock returns a time as time.Now does after somebody has set the wall clock: the monotonic reading goes on. The
// first word of a Time holds the seconds above 30 bits of nanoseconds.
func setClock(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	was := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(int64(by/time.Second)) << 30
	if at.Sub(was) != 0 || at.Unix()-was.Unix() != int64(by/time.Second) {
		t.Fatalf("a Time is not made as this test thinks: %v after %v", at, was)
	}
	return at
}

func TestAListByASetClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		b := On(newMemory(), Config{})
		if _, err := b.Open(opened("id"), Binding{Worker: "w"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		now := setClock(t, time.Now(), by)
		if list, live := b.List("", 10, now), b.Live(now); len(list) != 1 || live["w"][Opened] != 1 {
			t.Errorf("set by %v: %+v, %v", by, list, live)
		}
	}
}

// The date decides only within a second of what the store counts down to.
func TestStatusByDateAndLife(t *testing.T) {
	end := time.Unix(1_800_000_000, 0)
	f := func(after, rest time.Duration, want Status) {
		t.Helper()
		b := Binding{Expires: end}
		if got := b.status(end.Add(after), rest+grace); got != want {
			t.Errorf("%v after the date, %v left: %v; want %v", after, rest, got, want)
		}
	}
	f(-time.Minute, time.Minute, Found)
	f(-1, 1, Found)
	f(0, 0, Expired)
	f(0, clockError, Expired)
	f(-1, clockError, Found)
	f(time.Hour, clockError+1, Found)
	f(-time.Hour, 0, Expired)
	f(-time.Hour, -time.Second, Expired)
	f(-1, -grace, Found) // the store does not know its end
	f(0, -grace, Expired)
}
