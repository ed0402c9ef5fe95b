package tier

import (
	"testing"
	"time"
)

// TestDebts walks the table of doc.go: what a change leads to from every debt.
func TestDebts(t *testing.T) {
	k := id{"ns", "k"}
	const now, hour = int64(time.Second), int64(time.Hour)
	from := []debt{paid, oweTouch, oweReplace, oweSet, oweDrop, oweDelete}
	f := func(what string, change func(m *memory), want ...debt) {
		t.Helper()
		for i, d := range from {
			m := newMemory(1 << 20)
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
	m := newMemory(1 << 20)
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
