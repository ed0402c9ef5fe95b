package peers

import (
	"log/slog"
	"sync"
	"time"
)

// health is whether Redis is there, and the log lines of its coming and going.
type health struct {
	log  *slog.Logger
	addr string

	mu    sync.Mutex // guards all below
	since time.Time  // when it was lost; zero: it is there
	err   error
	lost  uint64 // times
	read  bool   // reading failed last
}

// fail notes that a call failed. The first one is logged.
func (h *health) fail(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if !h.since.IsZero() {
		return
	}
	h.since = now
	h.lost++
	h.log.Warn("history: Redis is lost: routers do not hear each other, and each goes on with what it knows",
		"addr", h.addr, "err", err)
}

// failRead notes that a read failed. Only writing says that Redis is lost, as a reader finds trouble of its own.
func (h *health) failRead(err error, now time.Time) {
	h.mu.Lock()
	was := h.read
	h.read, h.err = true, err
	there := h.since.IsZero()
	h.mu.Unlock()
	if !was && there {
		h.log.Warn("history: what other routers tell cannot be read", "addr", h.addr, "err", err)
	}
}

func (h *health) goodRead() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read && h.since.IsZero() {
		h.log.Info("history: what other routers tell is read again", "addr", h.addr)
	}
	h.read = false
}

// good notes that Redis is there, and reports since when it was lost, if it was.
func (h *health) good(now time.Time) (lost time.Duration, was bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return 0, false
	}
	lost = now.Sub(h.since)
	h.since, h.err = time.Time{}, nil
	return lost, true
}

func (h *health) ok() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since.IsZero()
}
