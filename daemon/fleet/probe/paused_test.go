package probe_test

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// pause makes every worker say from now on whether it is paused.
func (f *wire) pause(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = on
}

// TestPausedEngine: a worker that does nothing although a request waits is asked whether it is paused, and gets nothing
// until it goes on.
func TestPausedEngine(t *testing.T) {
	play(t, 2, func(f *fleet) {
		f.tell("vllm:iteration_tokens_total_count 7\n", "")
		f.set("w0/is_paused", 200)
		time.Sleep(20 * time.Second)
		f.asksWhetherPaused(t, "nothing waits", false)
		f.begin(t, "w0", worker.Dispatch{})
		time.Sleep(20 * time.Second)
		f.asksWhetherPaused(t, "a request waits", true)
		if got := f.serving(""); got != "w0 w1" {
			t.Errorf("it is not paused: %q serve", got)
		}
		f.pause(true)
		time.Sleep(6 * time.Second)
		if got := f.serving(""); got != "w1" {
			t.Errorf("paused: %q serve", got)
		}
		f.pause(false)
		time.Sleep(6 * time.Second)
		if got := f.serving(""); got != "w0 w1" {
			t.Errorf("it goes on: %q serve", got)
		}
	})
}

// asksWhetherPaused reports an error unless w0, or nobody, was asked.
func (f *fleet) asksWhetherPaused(t *testing.T, what string, want bool) {
	t.Helper()
	if f.count("w1/is_paused") > 0 || (f.count("w0/is_paused") > 0) != want {
		t.Errorf("%s: w0 was asked %d times, w1 %d times", what, f.count("w0/is_paused"), f.count("w1/is_paused"))
	}
}
