package judge

import "testing"

// TestRecord: whose refusals are compared with another worker's answer.
func TestRecord(t *testing.T) {
	var r record
	f := func(what string, do func(), want bool) {
		t.Helper()
		do()
		if got := r.doubtful(); got != want {
			t.Errorf("%s: doubtful %v; want %v", what, got, want)
		}
	}
	nothing := func() {}
	f("at first", nothing, true)
	f("after a success", func() { r.accept(sec(1)) }, false)
	f("after a refusal", func() { r.refuse(sec(5)) }, true)
	f("after a success of a request of before", func() { r.accept(sec(4)) }, true)
	f("after a success", func() { r.accept(sec(6)) }, false)
	f("after a refusal in which another worker agreed", func() { r.refuse(sec(7)); r.agree() }, false)
	r = record{}
	for range 3 {
		f("nobody accepts that", nothing, true)
		r.refuse(sec(9))
		r.agree()
	}
	f("others agree", nothing, false)
}

// TestRoom: a worker that says that it is full gets requests while it has fewer than then, and more by and by.
func TestRoom(t *testing.T) {
	f := func(what string, full, has int, after float64, want bool) {
		t.Helper()
		r := headroom{}
		r.refused(full, sec(1))
		if got := r.takes(has, sec(1+after)); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("full at 4, has 3", 4, 3, 0, true)
	f("full at 4, has 4", 4, 4, 0, false)
	f("0.4 s later", 4, 4, .41, true)
	f("0.4 s later, has 5", 4, 5, .41, false)
	f("full at 0", 0, 0, 1, false)
	f("2 s later", 0, 0, 2, true)
	f("full at 100, 1 s later", 100, 149, 1, true)
	f("at its end", 4, 1000, roomLasts.Seconds(), true)
	if (&headroom{}).takes(1e6, sec(9)) != true {
		t.Error("a worker that never refused is full")
	}
}

// TestProcess: start times on pages of metrics.
func TestProcess(t *testing.T) {
	f := func(what string, pages []float64, want ...ProcessTurn) {
		t.Helper()
		var p process
		for i, began := range pages {
			if got := p.read(began); got != want[i] {
				t.Errorf("%s: page %d: %v; want %v", what, i, got, want[i])
			}
		}
	}
	const same, is, was = SameProcess, NewProcess, OldProcess
	f("one", []float64{100, 100, 0, 100.4, 101}, same, same, same, same, same)
	f("restarts", []float64{100, 200, 300, 300}, same, is, is, same)
	f("two in turn", []float64{100, 200, 100, 200, 300, 100}, same, is, was, same, same, same)
	f("three in turn", []float64{100, 200, 300, 100, 200, 300}, same, is, is, was, same, same)
	f("none on the page", []float64{0, 0, 100}, same, same, same)
}

// TestHold: how long the requests of a kind are kept from a worker that refuses them.
func TestHold(t *testing.T) {
	var r record
	f := func(what string, until float64, do func()) {
		t.Helper()
		do()
		if !r.holds(sec(until-.01)) && until > 0 || r.holds(sec(until+.01)) {
			t.Errorf("%s: held until %v; want %.2f", what, r.hold.until, until)
		}
	}
	f("refused at first", 3, func() { r.refuse(sec(1)) })
	f("once more", 3, func() { r.refuse(sec(2)) })
	f("another worker refuses one", 3, func() { r.agree() })
	f("and the other", 0, func() { r.agree() })
	f("refused, and accepted by another worker", 5, func() { r.refuse(sec(3)); r.proven++ })
	f("others agree on three", 5, func() { r.refuse(sec(4)); r.agree(); r.agree(); r.agree() })
	f("its trial is sent", 7.5, func() { r.sent(sec(4.5)); r.sent(sec(5.5)) })
	f("and refused", 10, func() { r.refuse(sec(6)) })
	f("a request of before is accepted", 10, func() { r.accept(sec(2.9)) })
	f("a later one is accepted", 0, func() { r.accept(sec(10.5)) })
	f("refused", 0, func() { r.refuse(sec(11)) })
	f("twice", 14, func() { r.refuse(sec(12)) })
	for at := sec(14); at < sec(200); at = r.hold.until {
		r.sent(at)
		r.refuse(at)
	}
	if r.hold.back != maxBackOff {
		t.Errorf("held for %v at a time; want %v", r.hold.back, maxBackOff)
	}
}
