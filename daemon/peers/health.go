package peers

import (
	"log/slog"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
)

// health records whether Redis is there, and logs when it is lost and when it returns.
type health struct {
	log  *slog.Logger
	addr string

	mu    sync.Mutex // guards all below
	since time.Time  // when it was lost; zero: it is there
	back  time.Time  // when it last returned
	err   error
	lost  uint64 // how often
	read  bool   // the last read failed
}

// fail records that a call failed. It logs the first failure.
func (h *health) fail(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if !h.since.IsZero() {
		return
	}
	h.since = now
	h.lost++
	h.log.Warn("history: Redis is lost: routers receive nothing from each other, and each goes on with what it knows",
		"addr", h.addr, "err", err, "remedy", goredis.Remedy(err))
}

// failRead records that a read failed. Only a failed write means that Redis is lost: reads also fail for reasons of
// their own.
func (h *health) failRead(err error) {
	h.mu.Lock()
	was := h.read
	h.read, h.err = true, err
	there := h.since.IsZero()
	h.mu.Unlock()
	if !was && there {
		h.log.Warn("history: the messages of other routers cannot be read", "addr", h.addr, "err", err,
			"remedy", goredis.Remedy(err))
	}
}

func (h *health) goodRead() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read && h.since.IsZero() {
		h.log.Info("history: the messages of other routers are read again", "addr", h.addr)
	}
	h.read = false
}

// good records that Redis is there. If it was lost, good returns for how long.
func (h *health) good(now time.Time) (lost time.Duration, was bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return 0, false
	}
	lost = now.Sub(h.since)
	h.since, h.back, h.err = time.Time{}, now, nil
	return lost, true
}

func (h *health) ok() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since.IsZero()
}

// steady reports whether Redis is there, and has been for a Lease, so that every router alive could send a message.
func (h *health) steady(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since.IsZero() && now.Sub(h.back) >= Lease
}
