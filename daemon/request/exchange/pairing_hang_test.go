package exchange

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/pair"
)

// TestPrefillersThatHang: the decoder computes a prompt that no prefiller has computed in time, after half a second and not
// after header_timeout. The record names the prefiller. Later prompts wait for nobody, no decoder is blamed, and nothing
// stays in a prefiller's memory.
func TestPrefillersThatHang(t *testing.T) {
	t.Parallel()
	for _, name := range pair.Connectors() {
		if !pair.Connector(name).Alone() { // TestSGLangPrefillHangs has it
			continue
		}
		for _, extra := range []string{"", `,"stream":true`} {
			t.Run(name+extra, func(t *testing.T) {
				t.Parallel()
				d := newDuo(t, pair.Connector(name))
				d.hangs(t, extra)
			})
		}
	}
}

// TestABootstrapServerHangs: a prefiller whose bootstrap server hangs hangs, too. It gets no more prompts, and the record
// names it.
func TestABootstrapServerHangs(t *testing.T) {
	t.Parallel()
	d := newDuo(t, pair.Mooncake)
	d.pool.Pairing.Always = true
	for i := range 4 {
		if _, status := d.say(i, ""); status != 200 {
			t.Fatal(status)
		}
	}
	d.locked(func() { d.silent = true })
	for i := range 2 {
		s, status := d.say(100+i, "")
		if status != 200 || s.Result != string(journal.PrefillFailed) || !strings.Contains(s.Why, ": no bootstrap server answers") {
			t.Errorf("%d, the record has %+v", status, s)
		}
	}
	if s, status := d.say(200, ""); status != 200 || s.Result != string(journal.PrefillNone) {
		t.Errorf("%d, the record has %+v; want no prefiller", status, s)
	}
}

// fewClients is how many ask at a time.
const fewClients = 20

// soon is far from header_timeout, on a busy machine too.
const soon = 15 * time.Second

func (d *duo) hangs(t *testing.T, extra string) {
	t.Helper()
	d.pool.HeaderTimeout, d.pool.Pairing.Always = time.Minute, true
	for i := range 4 { // how long prefills take is learnt
		if _, out := d.say(i, extra); out != 200 {
			t.Fatal(out)
		}
	}
	stuck := make(chan struct{})
	d.hang(stuck)
	for i := range 2 { // all may go to one of the two
		if slowest := d.crowd(t, 100*(i+1), extra, string(journal.PrefillFailed)); slowest > soon {
			t.Errorf("the slowest of %d clients has waited %v", fewClients, slowest)
		}
		if !slices.ContainsFunc(d.pool.Workers.Stats(time.Now())[:2], func(s worker.Stats) bool { return s.Why == "" }) {
			break
		}
	}
	d.took()
	if slowest := d.crowd(t, 500, extra, string(journal.PrefillNone)); slowest > soon {
		t.Errorf("the slowest of later clients has waited %v", slowest)
	}
	if after := d.took(); strings.Count(after, "p0 ") > 1 || strings.Count(after, "p1 ") > 1 { // a trial each
		t.Errorf("prompts still go to prefillers: %s", after)
	}
	for _, s := range d.pool.Workers.Stats(time.Now()) {
		if s.ID[0] == 'd' && (s.State != worker.Ready || s.Why != "" || s.Failed+s.Broken > 0) {
			t.Errorf("%s: %v (%s), %d failed", s.ID, s.State, s.Why, s.Failed+s.Broken)
		}
		if s.ID[0] == 'p' && !strings.Contains(s.Why, "did not compute a prompt") {
			t.Errorf("%s: %v (%s)", s.ID, s.State, s.Why)
		}
	}
	close(stuck)
	d.hang(nil)
	d.freed(t)
	for end, i := time.Now().Add(20*time.Second), 1000; ; i++ {
		if s, _ := d.say(i, extra); s.Result == string(journal.PrefillDone) || s.Result == string(journal.PrefillBegun) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("prefillers that answer again get no prompts")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// crowd has many clients ask at once, and returns how long the slowest waited. All prompts are to end like this, but
// where no prefiller is to be asked two may have failed: on a busy machine each prefiller's pause ends before the crowd.
func (d *duo) crowd(t *testing.T, first int, extra, result string) (slowest time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	trials := 0
	for i := range fewClients {
		all.Go(func() {
			began := time.Now()
			s, status := d.say(first+i, extra)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(began))
			if result == string(journal.PrefillNone) && s.Result == string(journal.PrefillFailed) && status == 200 && trials < 2 {
				trials++
				return
			}
			if status != 200 || s.Result != result || result == string(journal.PrefillFailed) && (s.Prefiller == "" ||
				!strings.Contains(s.Why, s.Prefiller+": timeout")) && d.connector != pair.Mooncake && d.connector != pair.SGLang {
				t.Errorf("%d, the record has %+v; want %s", status, s, result)
			}
		})
	}
	all.Wait()
	return slowest
}

// say asks with a prompt of its own, and returns what became of it and the status.
func (d *duo) say(i int, extra string) (s struct{ Result, Prefiller, Why string }, status int) {
	in, out := d.askWith(fmt.Sprint(i, " "), 4000, extra)
	if out.Stream != nil {
		_ = out.Stream.Close()
	}
	if split := in.Seen.Split; split != nil {
		s.Result, s.Prefiller, s.Why = split.Result, split.Prefiller, split.Why
	}
	return s, out.Status
}
