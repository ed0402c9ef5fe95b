package tier

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// What L2 answers to a change meets an entry that may have been changed since.
func TestAnswersToChanges(t *testing.T) {
	const now, hour = int64(time.Second), int64(time.Hour)
	k := id{"ns", "k"}
	f := func(name string, owes debt, r reply, meanwhile func(m *memory), value string, after debt, base string) {
		t.Helper()
		m := newMemory(Config{MaxBytes: 1 << 20})
		m.put(k, write{value: []byte("first"), expires: hour}, 0)
		m.put(k, write{value: []byte("mine"), expires: hour, owes: owes}, 0)
		d := m.debts(m.debtors(), now)
		if len(d) != 1 {
			t.Fatalf("%s: %d debts", name, len(d))
		}
		meanwhile(m)
		m.finish(&d[0], r, now)
		e := m.find(k, now)
		switch {
		case e == nil && value == "":
		case e == nil, string(e.value) != value, e.owes != after, string(e.base) != base:
			t.Errorf("%s: %+v; want %q, owing %v on %q", name, e, value, after, base)
		}
	}
	nothing := func(*memory) {}
	again := func(m *memory) { m.put(k, write{value: []byte("newest"), expires: hour, owes: oweReplace}, 0) }
	longer := func(m *memory) { m.touch(k, 2*hour, 0, oweTouch) }
	same := reply{kind: 'v', value: []byte("mine"), ttl: time.Hour}
	took, other := reply{kind: 's'}, reply{kind: 'v', value: []byte("other"), ttl: time.Hour}
	f("taken", oweReplace, took, nothing, "mine", paid, "")
	f("it stood there", oweReplace, same, nothing, "mine", paid, "")
	f("another stands there", oweReplace, other, nothing, "other", paid, "")
	f("another stands there, and mine was touched", oweReplace, other, longer, "other", paid, "")
	f("deleted elsewhere", oweReplace, reply{kind: 't'}, nothing, "", paid, "")
	f("taken, and changed meanwhile", oweReplace, took, again, "newest", oweReplace, "mine")
	f("it stood there, and was changed meanwhile", oweReplace, same, again, "newest", oweReplace, "mine")
	f("deleted elsewhere, and changed meanwhile", oweReplace, reply{kind: 't'}, again, "newest", oweReplace, "first")
	f("not taken, and changed meanwhile", oweReplace, other, again, "newest", oweReplace, "first")
	f("taken, and touched meanwhile", oweReplace, took, longer, "mine", oweTouch, "first")
	f("forced, and changed meanwhile", oweSet, took, again, "newest", oweSet, "")
	f("removed meanwhile", oweReplace, other, func(m *memory) { m.delete(k, now) }, "", paid, "")
}

// An answer for a new key is held though another key of its slot was changed meanwhile.
func TestAnAnswerIsHeld(t *testing.T) {
	s := memoryOnly(t, 0)
	k := id{"ns", "k"}
	o := s.begin(k)
	*s.l1.slot(k)++
	o.adopt(reply{kind: 'v', value: []byte("1"), ttl: time.Hour}, false)
	if v := s.l1.read(k, s.now(), 0); string(v.value) != "1" || v.checked != doubt {
		t.Errorf("%+v; want the value, and doubt", v)
	}
	s.l1.put(k, write{value: []byte("2"), expires: never}, s.now())
	s.l1.adoptInDoubt(k, answer{value: []byte("1"), expires: never}, s.now())
	want(t, s, "k", "2")
}

// An answer that is there is taken, though the time for it is over: on a starved machine it is we who are late.
func TestALateLook(t *testing.T) {
	r := startRedis(t)
	dial := dialer{1 << 20}
	c, err := dial.Dial(context.Background(), "unix", r.Socket(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "PING\r\n")
	time.Sleep(200 * time.Millisecond) // for it to come
	_ = c.SetReadDeadline(time.Now().Add(-time.Second))
	buf := make([]byte, 64)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "+PONG\r\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if n, err := c.Read(buf); err == nil {
		t.Errorf("%q came from nowhere", buf[:n])
	}
}

// What is too long to be read ahead is read when it is asked for.
func TestLongValuesAreNotReadAhead(t *testing.T) {
	r := startRedis(t)
	first, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	long := strings.Repeat("x", ahead)
	first.Set("ns", "long", []byte(long), time.Hour)
	first.Set("ns", "short", []byte("1"), time.Hour)
	second, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	if n, err := second.Load(context.Background()); n != 1 || err != nil {
		t.Errorf("%d values, %v; want the short one", n, err)
	}
	if v, _, ok, err := second.Find("ns", "long"); !bytes.Equal(v, []byte(long)) || !ok || err != nil {
		t.Errorf("%d bytes, %v, %v", len(v), ok, err)
	}
}

// An answer to an older question does not undo what a debt has brought.
func TestAnAnswerFromBeforeADebtWasPaid(t *testing.T) {
	k := id{"ns", "k"}
	const now, hour = int64(time.Second), int64(time.Hour)
	m := newMemory(Config{MaxBytes: 1 << 20})
	m.put(k, write{value: []byte("mine"), expires: hour, owes: oweReplace}, 0)
	d := m.debts(m.debtors(), now)
	ticket := m.read(k, now, 0).ticket
	m.finish(&d[0], reply{kind: kindValue, value: []byte("other"), ttl: time.Hour}, now)
	m.adopt(k, answer{ticket: ticket, value: []byte("mine"), expires: hour}, now)
	if v := m.read(k, now, 0); string(v.value) != "other" || v.checked != doubt {
		t.Errorf("%q, checked %d; want the other, in doubt", v.value, v.checked)
	}
}

// What this router owes is newer than what Redis answers.
func TestAnAnswerToADebtor(t *testing.T) {
	k := id{"ns", "k"}
	m := newMemory(Config{MaxBytes: 1 << 20})
	m.put(k, write{value: []byte("mine"), expires: never, owes: oweSet}, 0)
	m.adopt(k, answer{ticket: m.read(k, 1, 0).ticket, value: []byte("older"), expires: never}, 1)
	if v := m.read(k, 1, 0); string(v.value) != "mine" || v.owes != oweSet {
		t.Errorf("%+v; want mine, owed", v)
	}
}
