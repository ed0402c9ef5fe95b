package message

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// MostRetry bounds the seconds of a Retry-After: SDKs take a larger number for none.
const MostRetry = 60

// measures reports whether the pool can estimate when the fault ends: a worker was missing, or has caused it.
func (f *Fault) measures() bool {
	return f.Retry > 0 && (f.Cause == NoFreeWorker || f.Cause == UnknownToAll || f.Cause == WorkerFailed ||
		f.Code == FaultResting.Code)
}

// Measured returns the fault with the Retry-After that the pool has measured, or that a worker has asked for, if that
// is later, and with the pool's status where no worker has room. The pool may be nil.
func (f Fault) Measured(p *epoch.Pool, now time.Time) Fault {
	if p != nil && f.measures() {
		f.Retry = min(MostRetry, max(f.Retry, p.Workers.RetryAfter(now)))
	}
	if p != nil && f.Cause == NoFreeWorker && p.OverflowStatus == http.StatusServiceUnavailable {
		f.Status, f.Kind = p.OverflowStatus, "service_unavailable"
	}
	return f
}

// Asked returns the fault for a worker's refusal, with the Retry-After that the worker gave.
func Asked(f Fault, h upstream.Header) Fault {
	if s, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After"))); err == nil && s > 0 {
		f.Retry = min(MostRetry, s)
	}
	return f
}

// ComeBackIn sets Retry-After in a worker's own answer that it is full, to the router's estimate for the pool.
func (o *Outbound) ComeBackIn(seconds int) {
	if seconds == 0 || o.Status < 500 && o.Status != 429 && o.Status != 408 {
		return
	}
	o.Header = slices.DeleteFunc(o.Header, func(f upstream.Field) bool { return strings.EqualFold(f.Name, "Retry-After") })
	o.Set("Retry-After", strconv.Itoa(seconds))
}
