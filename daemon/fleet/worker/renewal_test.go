package worker

import (
	"testing"
	"time"
)

// renewing makes a pool of n workers with its watcher. All are up and list "base".
func renewing(n int) (*Pool, *watcher) {
	seen := &watcher{}
	p := upPoolOf(Config{Workers: specs(n), Watcher: seen})
	for i := range n {
		p.say(i, "base")
	}
	seen.calls = nil
	return p, seen
}

func (p *Pool) number(i int) uint64 { return p.fleet.workers[i].number }

// TestRenewListsAsksOnceASecond: each worker that is up is asked, and no more than once a second.
func TestRenewListsAsksOnceASecond(t *testing.T) {
	p, seen := renewing(3)
	p.kill(1, 1)
	seen.calls = nil
	p.RenewLists(p.after(10))
	seen.want(t, "list 1", "list 3")
	for i := range 9 {
		p.RenewLists(p.after(10.1 + float64(i)/10))
	}
	seen.want(t)
	p.RenewLists(p.after(11))
	seen.want(t, "list 1", "list 3")
}

// TestRenewingCountsWhatIsToCome: a reading that began before the list was wanted does not count.
func TestRenewingCountsWhatIsToCome(t *testing.T) {
	p, _ := renewing(2)
	want := func(when string, n int) {
		t.Helper()
		if got := p.Renewing(); got != n {
			t.Errorf("%s: %d to come; want %d", when, got, n)
		}
	}
	want("at first", 0)
	p.Listing(p.number(0)) // that of every ten seconds
	p.RenewLists(p.after(10))
	want("asked", 2)
	p.say(0, "base")
	want("an answer to a question of before", 2)
	p.Listing(p.number(0))
	want("the question", 2)
	p.say(0, "base")
	want("its answer", 1)
	p.Listing(p.number(1))
	p.Unlisted(p.number(1), "late", p.after(11))
	want("no answer is an answer", 0)
	p.RenewLists(p.after(20))
	p.kill(0, 20)
	want("a worker that went down", 1)
	p.Update(specs(1), p.after(21))
	want("a worker that was removed", 0)
}

// TestRenewList asks one worker alone, at any rate: the prober bounds that.
func TestRenewList(t *testing.T) {
	p, seen := renewing(2)
	first, second := p.fleet.workers[0], p.fleet.workers[1]
	p.RenewList(second)
	p.RenewList(second)
	seen.want(t, "list 2", "list 2")
	if p.Renews(first) || !p.Renews(second) {
		t.Errorf("renews: %v, %v; want the second alone", p.Renews(first), p.Renews(second))
	}
	p.Listing(second.number)
	p.say(1, "base", "adapter")
	if p.Renews(second) || !p.Lists(second, "adapter") || p.Lists(first, "adapter") {
		t.Error("the answer has not come, or at the wrong worker")
	}
	p.kill(0, 1)
	seen.calls = nil
	p.RenewList(first)
	seen.want(t)
	p.Update(specs(1), p.after(time.Second.Seconds()*2))
	seen.calls = nil
	p.RenewList(second) // an answer of a worker that was removed meanwhile
	seen.want(t)
	if p.Renews(second) {
		t.Error("a removed worker is waited for")
	}
}
