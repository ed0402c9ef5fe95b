package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestSlowClientIsNotASilentWorker: while the client takes nothing, nothing is read of the worker either, and a fall
// there with its grace is no reason to end the answer that has come meanwhile.
func TestSlowClientIsNotASilentWorker(t *testing.T) {
	t.Parallel()
	const tokens = 200
	token := "data: {\"choices\":[{\"index\":0,\"text\":\"" + strings.Repeat("y", 100_000) + "\"}]}\n\n"
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for range tokens {
			io.WriteString(rw, token)
		}
		io.WriteString(rw, done)
	})
	r := start(t, fromDefaults("down_grace = \"1s\"", w.URL), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(aStream))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // the buffers on the way fill up
	pool := r.state.Load().pools[0].route.Workers
	w.Listener.Close()
	eventually(t, "the worker down", func() bool { return pool.Stats(time.Now())[0].State == worker.Down })
	time.Sleep(2 * time.Second) // the grace, and a second look
	b, err := io.ReadAll(resp.Body)
	if want := tokens*len(token) + len(done) - 10; err != nil || len(b) != want {
		t.Errorf("%d bytes, %v; want %d: ...%q", len(b), err, want, b[max(0, len(b)-200):])
	}
}
