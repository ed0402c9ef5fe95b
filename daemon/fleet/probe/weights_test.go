package probe_test

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestWeightsNamedLater: a worker that has the path and no version yet is asked on, and one without the path is not.
func TestWeightsNamedLater(t *testing.T) {
	play(t, 1, func(f *fleet) {
		says := func(answer string) (version string, asked int) {
			f.mu.Lock()
			f.weights = answer
			f.mu.Unlock()
			before := f.count("w0/weight_info")
			f.begin(t, "w0", worker.Dispatch{}) // of a busy worker the router asks often
			time.Sleep(10 * time.Second)
			return f.Stats(time.Now())[0].Weights.String(), f.count("w0/weight_info") - before
		}
		f.begin(t, "w0", worker.Dispatch{})
		time.Sleep(10 * time.Second)
		if version, asked := says(""); version != "" || asked != 0 {
			t.Errorf("an answer that is no JSON: version %q, asked %d times more", version, asked)
		}
		f.set("w0", 503)
		time.Sleep(20 * time.Second)
		f.mu.Lock()
		f.weights = `{"weight_version":null}`
		f.mu.Unlock()
		f.set("w0", 200)
		time.Sleep(20 * time.Second)
		if version, asked := says(`{"weight_version":null}`); version != "" || asked == 0 {
			t.Errorf("no version yet: %q, asked %d times more", version, asked)
		}
		if version, _ := says(`{"weight_version":"step-7"}`); version != "7" {
			t.Errorf("a version: %q", version)
		}
	})
}
