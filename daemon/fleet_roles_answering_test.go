package daemon

import (
	"fmt"
	"testing"
)

// TestPrefillersAnswer: with prefillers_answer a prefiller answers requests too, computes the prompts of those itself
// and of others that a decoder answers, and serves alone when no decoder is left.
func TestPrefillersAnswer(t *testing.T) {
	t.Parallel()
	f := startRolesWith(t, 1, 1, rolesOptions{answering: true})
	p, d := f.prefill[0], f.decode[0]
	ask := func(name string, tokens int) {
		t.Helper()
		if err := f.ask(t.Context(), name, tokens, true); err != nil {
			t.Fatal(name, err)
		}
	}
	for n := range 4 { // of equal workers the one that had fewer is next
		ask(fmt.Sprint("short", n), 50)
	}
	if p.Stats().Finished == 0 || d.Stats().Finished == 0 {
		t.Errorf("of 4 short requests the prefiller answered %d and the decoder %d", p.Stats().Finished, d.Stats().Finished)
	}
	for n := range 6 {
		ask(fmt.Sprint("long", n), 2000)
	}
	done := f.metric("warmpath_prefills_total", `result="done"`)
	if done == 0 || done == 6 || p.Stats().Finished <= 2+int64(done) {
		t.Errorf("of 6 long prompts %v were split, and the prefiller ended %d requests; want some, not all", done,
			p.Stats().Finished)
	}
	eventually(t, "no KV is kept", func() bool { return f.pinned() == 0 })
	d.Close()
	ask("at once", 2000)
	eventually(t, "the decoder is down", func() bool { return f.up() == 1 })
	served := p.Stats().Finished
	for n := range 4 {
		ask(fmt.Sprint("alone", n), 2000)
	}
	if got := p.Stats().Finished - served; got < 4 || got > 5 { // it may still have computed a prompt for the decoder
		t.Errorf("the prefiller ended %d requests, of 4 while no decoder was there", got)
	}
}
