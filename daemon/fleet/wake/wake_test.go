package wake

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// However many requests come, the scaler is called once in a cool-down, and a failure is told without the URL.
func TestOneCallACoolDown(t *testing.T) {
	calls := make(chan string, 100)
	status := 200
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		calls <- r.Method + " " + string(b)
		rw.WriteHeader(status)
	}))
	defer s.Close()
	var log locked
	w := New("main", "", slog.New(slog.NewTextHandler(&log, nil)))
	w.Wake()
	w.Configure(s.URL + "/?secret=1")
	var all sync.WaitGroup
	for range 50 {
		all.Go(w.Wake)
	}
	all.Wait()
	if got := <-calls; got != `POST {"pool":"main"}` {
		t.Errorf("called with %s", got)
	}
	if got := w.Failed(); got != "" {
		t.Errorf("a call that was taken failed: %s", got)
	}
	status = 500
	w.next.Store(0) // the cool-down is over
	w.Wake()
	<-calls
	s.Close() // it waits for the answer
	w.next.Store(0)
	w.Wake()
	for end := time.Now().Add(5 * time.Second); strings.Count(log.String(), "does not take") < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log:\n%s", log.String())
		}
	}
	if got := w.Failed(); got == "" || strings.Contains(got, "secret") {
		t.Errorf("the last call failed: %q", got)
	}
	if n := len(calls); n != 0 || strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "it answered 500") {
		t.Errorf("%d calls more, and the log:\n%s", n, log.String())
	}
}

// TestAFailedCallIsRepeated: one request comes while the scaler restarts. It is called again within seconds, until it takes
// the call.
func TestAFailedCallIsRepeated(t *testing.T) {
	t.Parallel()
	calls := make(chan time.Time, 100)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if len(calls) < 4 {
			rw.WriteHeader(503)
		}
		calls <- time.Now()
	}))
	defer s.Close()
	New("main", s.URL, slog.New(slog.DiscardHandler)).Wake()
	time.Sleep(13 * time.Second)
	if n := len(calls); n != 5 {
		t.Fatalf("called %d times in 13 s, want 5: four fail", n)
	}
	first := <-calls
	if second, third := (<-calls).Sub(first), (<-calls).Sub(first); second < again || third < 3*again {
		t.Errorf("called again after %v and %v", second, third)
	}
}

type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
