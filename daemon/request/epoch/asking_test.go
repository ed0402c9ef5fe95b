package epoch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

type uncounted struct{}

func (uncounted) Tokens(string, string) {}

// TestAnswersTogether: workers that announce long answers and stop within them hold a bounded memory together, and none
// that they have not sent. Short answers come meanwhile.
func TestAnswersTogether(t *testing.T) {
	const long, come = 24 << 20, 6 << 20
	gone := make(chan struct{})
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			_, _ = w.Write([]byte("short"))
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(long))
		_, _ = w.Write([]byte(strings.Repeat("x", come)))
		w.(http.Flusher).Flush()
		<-gone
	}))
	defer worker.Close()
	defer close(gone)
	client, err := upstream.New(upstream.Config{URL: worker.URL})
	if err != nil {
		t.Fatal(err)
	}
	var clients Clients
	clients.Set(map[string]*upstream.Client{worker.URL: client})
	asking := NewAsking(Asked{Pool: &route.Pool{Name: "p"}, Clients: &clients, Log: slog.New(slog.DiscardHandler), Meter: uncounted{}})
	asking.Configure("", AskConfig{})
	to := tokens.Target{URL: worker.URL}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var all sync.WaitGroup
	var full atomic.Int32
	for range 30 {
		all.Go(func() {
			if _, _, err := asking.Post(ctx, to, "/long", nil, long); errors.Is(err, quota.ErrFull) {
				full.Add(1)
			}
		})
	}
	var most int64
	for ; full.Load() == 0 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		most = max(most, answersHeld.Held())
	}
	if most < 32<<20 || most > 64<<20 {
		t.Errorf("%d bytes are held; want 32 to 64 MiB", most)
	}
	if status, answer, err := asking.Post(t.Context(), to, "/short", nil, 100); status != 200 || string(answer) != "short" {
		t.Errorf("%d %q %v", status, answer, err)
	}
	stop()
	all.Wait()
	if held := answersHeld.Held(); held != 0 || full.Load() == 0 {
		t.Errorf("%d bytes are held afterwards; %d of 30 were refused", held, full.Load())
	}
}
