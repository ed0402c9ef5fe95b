// Package wake asks a scaler for workers: it posts to an operator's URL when a request comes and no worker is up that
// could take it. A scaler that reads metrics each half minute would notice up to half a minute later.
package wake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	neturl "net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/direct"
)

const (
	coolDown = 30 * time.Second // between two calls
	patience = 10 * time.Second // for an answer
	again    = time.Second      // from a call that failed to the next one; twice as long each time, up to longest
	longest  = 4 * time.Second
)

// Waker calls one pool's URL. It is safe for concurrent use.
type Waker struct {
	pool string
	log  *slog.Logger
	url  atomic.Pointer[string]
	next atomic.Int64 // nanoseconds from began to when it may call again
	from time.Time
	http *http.Client
	why  atomic.Pointer[string] // the last call was not taken; nil = it was, or there was none
}

// New makes a waker that calls url; "" = it calls nothing. The body of its calls names the pool.
func New(pool, url string, log *slog.Logger) *Waker {
	w := &Waker{pool: pool, log: log, from: time.Now(), http: direct.Client(nil, patience)}
	w.Configure(url)
	return w
}

// Configure makes url the one to call; "" = none.
func (w *Waker) Configure(url string) { w.url.Store(&url) }

// Wake calls the URL, unless it was called within the cool-down. It does not wait for the answer.
func (w *Waker) Wake() {
	url := *w.url.Load()
	if url == "" {
		return
	}
	now, next := int64(time.Since(w.from)), w.next.Load()
	if now >= next && w.next.CompareAndSwap(next, now+int64(coolDown)) {
		go w.call(url)
	}
}

// Failed returns why the last call was not taken, "" if it was, or none was made.
func (w *Waker) Failed() string {
	if why := w.why.Load(); why != nil {
		return *why
	}
	return ""
}

// call calls until a call is taken, another URL is set, or the cool-down is nearly over.
func (w *Waker) call(url string) {
	began := time.Now()
	for wait := again; time.Since(began)+wait < coolDown && *w.url.Load() == url; wait = min(2*wait, longest) {
		err := w.post(url)
		if err == nil {
			w.why.Store(nil)
			w.log.Info("no worker is up for a request: wake_url was called")
			return
		}
		why := err.Error()
		w.why.Store(&why)
		if wait == again {
			w.log.Warn("wake_url does not take the call for workers: correct it, or start the scaler that listens there; "+
				"it is called again while requests come", "again_in", wait, "error", err)
		}
		time.Sleep(wait)
	}
}

// post returns no error that has the URL in it: that may hold a password.
func (w *Waker) post(url string) error {
	body := []byte(`{"pool":` + strconv.Quote(w.pool) + `}`)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("it is no URL")
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := w.http.Do(r)
	if e, ok := errors.AsType[*neturl.Error](err); ok && e.Timeout() {
		return fmt.Errorf("no answer within %s", patience)
	} else if ok {
		return e.Err
	}
	defer a.Body.Close()
	_, _ = io.CopyN(io.Discard, a.Body, 64<<10)
	if a.StatusCode >= 300 {
		return fmt.Errorf("it answered %d", a.StatusCode)
	}
	return nil
}
