package tier

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestDebts walks the table at type debt: which debt follows from which after a change.
func TestDebts(t *testing.T) {
	k := id{"ns", "k"}
	const now, hour = int64(time.Second), int64(time.Hour)
	from := []debt{paid, oweTouch, oweReplace, oweSet, oweDrop, oweDelete}
	f := func(what string, change func(m *memory), want ...debt) {
		t.Helper()
		for i, d := range from {
			m := newMemory(Config{MaxBytes: 1 << 20})
			m.put(k, write{value: []byte("first"), expires: hour}, 0)
			switch d {
			case oweTouch:
				m.touch(k, hour, 0, oweTouch)
			case oweDrop:
				m.deleteOnly(k, []byte("first"), hour, 0)
			default:
				m.put(k, write{value: []byte("mine"), expires: hour, owes: d}, 0)
			}
			base := string(m.find(k, now).base)
			if want := map[bool]string{true: "first"}[d.givesWay()]; m.find(k, now).owes != d || base != want {
				t.Fatalf("%v: begins as %+v", d, m.find(k, now))
			}
			change(m)
			e := m.find(k, now)
			if e.owes != want[i] {
				t.Errorf("%s after %v: owes %v; want %v", what, d, e.owes, want[i])
			}
			if _, owing := m.owing[e]; owing != (e.owes != paid) {
				t.Errorf("%s after %v: among the debtors %v", what, d, owing)
			}
			wantBase := base
			if wantBase == "" && e.owes.givesWay() { // the first of the changes that give way
				wantBase = map[bool]string{true: "mine", false: "first"}[d == paid]
			}
			if e.owes.givesWay() && string(e.base) != wantBase || !e.owes.givesWay() && e.owes != oweDelete && e.base != nil {
				t.Errorf("%s after %v: %v on the base %q; want %q", what, d, e.owes, e.base, wantBase)
			}
		}
	}
	put := func(owes debt) func(*memory) {
		return func(m *memory) {
			w := write{value: []byte("newest"), expires: hour, owes: owes}
			if owes.tombstone() {
				w.value = nil
			}
			m.put(k, w, now)
		}
	}
	f("Touch", func(m *memory) { m.touch(k, 2*hour, now, oweTouch) }, oweTouch, oweTouch, oweReplace, oweSet, oweDrop, oweDelete)
	f("Replace", put(oweReplace), oweReplace, oweReplace, oweReplace, oweSet, oweReplace, oweSet)
	f("Set", put(oweSet), oweSet, oweSet, oweSet, oweSet, oweSet, oweSet)
	f("Drop", func(m *memory) {
		value := m.find(k, now).value
		if _, ok := m.deleteOnly(k, value, hour, now); !ok {
			t.Error("not dropped")
		}
	}, oweDrop, oweDrop, oweDrop, oweDelete, oweDrop, oweDelete)
	f("Delete", put(oweDelete), oweDelete, oweDelete, oweDelete, oweDelete, oweDelete, oweDelete)
	f("what Redis answered", put(paid), paid, paid, paid, paid, paid, paid)
}

// What was given to Redis at once is no debt; a tombstone goes with that, and a change of meanwhile is doubted.
func TestMarks(t *testing.T) {
	k := id{"ns", "k"}
	const now = int64(time.Hour)
	m := newMemory(Config{MaxBytes: 1 << 20})
	ticket, _ := m.put(k, write{expires: never, owes: oweDelete}, now)
	m.markPaid(k, ticket, now)
	if m.entries != 0 || len(m.owing) != 0 {
		t.Errorf("%d entries, %d owing; a tombstone that Redis has goes", m.entries, len(m.owing))
	}
	ticket, _ = m.put(k, write{value: []byte("1"), expires: never, owes: oweSet}, now)
	m.markPaid(k, ticket, now)
	if e := m.find(k, now); e.owes != paid || e.checked != now {
		t.Errorf("%+v; want it paid", e)
	}
	m.put(k, write{value: []byte("2"), expires: never, owes: oweSet}, now)
	m.markPaid(k, ticket, now) // of the change before
	if e := m.find(k, now); e.owes != oweSet || e.checked != doubt {
		t.Errorf("%+v; want it owed, and in doubt", e)
	}
	m.put(k, write{value: []byte("3"), expires: never}, now)
	m.markOwing(k, now)
	if e := m.find(k, now); e.owes != oweSet {
		t.Errorf("%+v; want it owed", e)
	}
	m.put(k, write{expires: never, owes: oweDelete}, now)
	m.markOwing(k, now)
	if e := m.find(k, now); e.owes != oweDelete {
		t.Errorf("%+v; want the deletion owed", e)
	}
}

// A deletion takes away nothing but what its caller saw, and of what is not known here it records what it was.
func TestDeleteOnly(t *testing.T) {
	k := id{"ns", "k"}
	const now, hour = int64(time.Second), int64(time.Hour)
	m := newMemory(Config{MaxBytes: 1 << 20})
	if _, ok := m.deleteOnly(k, []byte("1"), hour, now); !ok || string(m.find(k, now).base) != "1" {
		t.Errorf("%v, %+v; want a tombstone on the base 1", ok, m.find(k, now))
	}
	m.put(k, write{value: []byte("2"), expires: hour}, now)
	if _, ok := m.deleteOnly(k, []byte("1"), hour, now); ok || string(m.find(k, now).value) != "2" {
		t.Errorf("%v, %+v; want 2 to stay", ok, m.find(k, now))
	}
}

// What is expired or gone is not owed any more; what Redis has confirmed once is put back, a debt is not.
func TestWhoOwes(t *testing.T) {
	const now, hour = int64(time.Second), int64(time.Hour)
	m := newMemory(Config{MaxBytes: 1 << 20})
	for _, e := range []struct {
		key     string
		expires int64
		owes    debt
	}{
		{"paid", hour, paid}, {"set", hour, oweSet}, {"replace", hour, oweReplace}, {"delete", hour, oweDelete},
		{"expired", now, oweSet}, {"paid and expired", now, paid}, {"gone", hour, oweSet}, {"paid and gone", hour, paid},
	} {
		w := write{value: []byte("1"), expires: e.expires, owes: e.owes}
		if e.owes.tombstone() {
			w.value = nil
		}
		m.put(id{"ns", e.key}, w, 0)
	}
	m.put(id{"ns", "touch"}, write{value: []byte("1"), expires: hour}, 0)
	m.touch(id{"ns", "touch"}, hour, 0, oweTouch)
	all, owing := m.all(), m.debtors()
	m.delete(id{"ns", "gone"}, 0)
	m.delete(id{"ns", "paid and gone"}, 0)
	f := func(what string, got []owed, want ...string) {
		t.Helper()
		var keys []string
		for _, o := range got {
			keys = append(keys, o.key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("%s: %q; want %q", what, keys, want)
		}
	}
	f("put back", m.confirmed(all, now), "paid", "touch")
	f("owed", m.debts(owing, now), "delete", "replace", "set", "touch")
	if e := m.spaces["ns"].entries["expired"]; e != nil {
		t.Error("what expired while it was owed is still there")
	}
	if rows := m.rows(nil, "ns", now, all); len(rows) != 4 {
		t.Errorf("%d live values; want 4: neither tombstones, nor expired, nor gone", len(rows))
	}
}

// Redis's side of every debt: what stands there before, what is owed, and what stands there afterwards.
func TestDebtsInRedis(t *testing.T) {
	r := startRedis(t)
	s := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	ctx := context.Background()
	s.l2.readEpoch(ctx)
	n := 0
	f := func(stands, base, value string, owes debt, answer kind, after string, life time.Duration) {
		t.Helper()
		n++
		o := owed{id: id{"ns", fmt.Sprint(n)}, ttl: time.Minute, owes: owes, value: []byte(value)}
		if base != "" {
			o.base = []byte(base)
		}
		key := s.l2.keys.key(o.id)
		if stands != "" {
			r.bare.Set(ctx, key, stands, time.Hour)
		}
		var got kind
		if err := s.l2.send(ctx, []owed{o}, func(_ *owed, r reply) { got = r.kind }); err != nil {
			t.Fatal(err)
		}
		left := r.bare.PTTL(ctx, key).Val().Round(time.Minute)
		if text := r.bare.Get(ctx, key).Val(); got != answer || text != after || text != "" && left != life {
			t.Errorf("%q, %v of %q on %q: %c, then %q for %v; want %c, %q for %v",
				stands, owes, value, base, got, text, left, answer, after, life)
		}
	}
	f("", "", "mine", oweSet, 's', "vmine", time.Minute)
	f("vother", "", "mine", oweSet, 's', "vmine", time.Minute)
	f("t", "", "mine", oweSet, 's', "vmine", time.Minute)
	f("", "", "mine", oweTouch, 'r', "vmine", time.Minute)
	f("vmine", "", "mine", oweTouch, 'v', "vmine", time.Hour)
	f("t", "", "mine", oweTouch, 't', "t", time.Hour)
	f("", "", "mine", oweReplace, 's', "vmine", time.Minute)
	f("vother", "", "mine", oweReplace, 'v', "vother", time.Hour)
	f("vold", "old", "mine", oweReplace, 's', "vmine", time.Minute)
	f("vother", "old", "mine", oweReplace, 'v', "vother", time.Hour)
	f("t", "old", "mine", oweReplace, 't', "t", time.Hour)
	f("t", "", "mine", oweReplace, 's', "vmine", time.Minute)
	f("vold", "old", "", oweDrop, 'v', "t", time.Hour)
	f("vother", "old", "", oweDrop, 'v', "vother", time.Hour)
	f("", "old", "", oweDrop, 'n', "", 0)
	f("vother", "", "", oweDelete, 'v', "t", time.Hour)
	f("t", "", "", oweDelete, 't', "t", time.Hour)
	f("", "", "", oweDelete, 'n', "t", time.Minute)
	r.bare.Set(ctx, s.l2.keys.epoch(), "another", 0)
	f("", "old", "mine", oweReplace, 0, "", 0) // it has forgotten: no answer
	f("", "", "mine", oweSet, 's', "vmine", time.Minute)
}
