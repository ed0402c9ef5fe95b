package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Many values of the store cost one call: a Go module that gets those of all workers, and makes no garbage of it.
func TestManyValuesInOneCall(t *testing.T) {
	kv := &store{m: map[string]string{}}
	h := newHost(t, Config{KV: kv, Slots: 1})
	f := func(keys, want int, fallback string, allow ...string) Result {
		t.Helper()
		s := learns(t, h, map[string]string{"mode": "store", "keys": fmt.Sprint(keys)}, allow...)
		s.Pick(frame(keys, 0)) // it learns how much room the answer needs
		r := s.Pick(frame(keys, 0))
		if r.Row != want || r.Fallback != fallback {
			t.Errorf("%d keys: %+v (%s); want row %d", keys, r, s.Stats().LastError, want)
		}
		return r
	}
	few := f(5, 0, "", "kv")
	for i := range 256 {
		kv.m[t.Name()+"/worker-"+fmt.Sprint(i)] = strings.Repeat("x", i%200)
	}
	all := f(256, 199, "", "kv")
	// Honest fuel: what the host does for a key, by the price of a look into the store.
	if each := (all.Fuel - few.Fuel) / 251; each < kvGetFuel || each > kvGetFuel+500 {
		t.Errorf("%d fuel a key; want that of a look into the store, %d, and the bytes", each, kvGetFuel)
	}
	f(3, 0, "decline")
}

func TestManyKeysAreBounded(t *testing.T) {
	s := learns(t, newHost(t, Config{KV: &store{m: map[string]string{}}, Fuel: 10_000_000}),
		map[string]string{"mode": "store", "keys": fmt.Sprint(abi.MaxMany + 1)}, "kv")
	if r := s.Pick(frame(2, 1)); r.Fallback != "decline" {
		t.Errorf("%+v; want a decline, as the call fails", r)
	}
}

// The local time of an option, over both changes of the clocks, and what is no time zone.
func TestZones(t *testing.T) {
	h := newHost(t, Config{})
	f := func(zone, at string, want uint16) {
		t.Helper()
		s := learns(t, h, map[string]string{"mode": "clock", "timezone": zone})
		fr := frame(1, 0)
		now, err := time.Parse("2006-01-02T15:04", at)
		if err != nil {
			t.Fatal(err)
		}
		fr.Header.Now = now.UnixNano()
		if r := s.Pick(fr); r.Reason != want || r.Fallback != "" {
			t.Errorf("%s UTC in %s: %d; want %d: %s", at, zone, r.Reason, want, s.Stats().LastError)
		}
	}
	f("Europe/Berlin", "2026-03-29T00:59", 1_59) // a Sunday
	f("Europe/Berlin", "2026-03-29T01:00", 3_00)
	f("Europe/Berlin", "2026-10-25T00:59", 2_59)
	f("Europe/Berlin", "2026-10-25T01:00", 2_00)
	f("Asia/Kolkata", "2026-11-27T20:00", 6_01_30)
	f("+05:30", "2026-11-25T20:00", 4_01_30)
	f("-08:00", "2026-11-25T04:00", 2_20_00)
	f("UTC", "2026-11-25T04:07", 3_04_07)
	wasm, err := learner()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"Europe/Nowhere", "", "+5", "+15:00", "+01:60", "../../etc/passwd", strings.Repeat("x", 65)} {
		_, err := h.Load(ctx, "m", wasm, Options{Values: map[string]string{"timezone": bad}})
		if err == nil || !strings.Contains(err.Error(), `want a time zone, as Europe/Berlin or +05:30`) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
