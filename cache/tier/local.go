package tier

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Local is the store for strategies, which may not wait in the middle of a choice. Memory answers, always. The store's
// Run sends Local's changes to Redis later, where it gives way to what another router has written meanwhile. What
// memory does not hold, or Redis has not confirmed for a second, is fetched in the background for a later call. None of
// this counts for the breaker: a strategy that floods the store takes nothing from sessions.
type Local struct {
	t      *tiers
	keys   int // a namespace may hold
	bytes  int // of a namespace: keys, values and overhead
	wanted bounded.Queue[id]
}

const (
	// wantedMost bounds the questions that wait; what is over it is asked for at a later call.
	wantedMost = 1024
	// wantedPause is between two questions, so that Redis has time for sessions.
	wantedPause = time.Millisecond
)

func newLocal(t *tiers, keys, bytes int) *Local {
	return &Local{t: t, keys: keys, bytes: min(bytes, t.l1.part), wanted: make(bounded.Queue[id], wantedMost)}
}

// Run asks Redis for what memory did not hold, until ctx is done.
func (l *Local) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-l.wanted:
			l.fetch(ctx, k)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wantedPause):
		}
	}
}

// fetch asks for one value.
func (l *Local) fetch(ctx context.Context, k id) {
	o := l.t.begin(k)
	if o.alone() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	payload, ttl := o.backup()
	if r, err := o.l2.askQuietly(ctx, scriptRead, k, payload, ttl); err == nil && r.kind != kindForgot {
		o.adopt(r, false)
	}
}

// Get returns what memory holds.
func (l *Local) Get(ns, key string) ([]byte, bool) {
	t := l.t
	now := t.now()
	stale := now - int64(fresh)
	v := t.l1.read(id{ns, key}, now, stale)
	if t.shared() && v.owes == paid && (!v.live || v.checked < stale) {
		l.wanted.Put(id{strings.Clone(ns), key})
	}
	if !v.live {
		t.n.misses.Add(1)
		return nil, false
	}
	t.n.l1Hits.Add(1)
	return v.value, true
}

// CompareAndSwap stores new if memory holds old; a nil old means that it holds nothing. It returns 0, [abi.ErrConflict]
// or [abi.ErrLimit].
func (l *Local) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) int32 {
	if !l.t.l1.fits(key, new) {
		return abi.ErrLimit
	}
	k := id{ns, key}
	now := l.t.now()
	errno := abi.ErrLimit
	w := write{expires: until(now, ttl), owes: l.t.owing(oweReplace)}
	if l.t.l1.update(k, w, now, func(stands []byte) ([]byte, bool) {
		if (stands != nil) != (old != nil) || !bytes.Equal(stands, old) {
			errno = abi.ErrConflict
			return nil, false
		}
		return append([]byte{}, new...), l.allows(k, len(stands), len(new))
	}) {
		return 0
	}
	return errno
}

// Add adds delta to a counter of this router and returns the sum, and 0, [abi.ErrInvalid] if what stands there is no
// number or the sum overflows, or [abi.ErrLimit]. A counter that is not there begins at 0 and lives for ttl.
func (l *Local) Add(ns, key string, delta int64, ttl time.Duration) (sum int64, errno int32) {
	k := id{ns, key}
	now := l.t.now()
	errno = abi.ErrLimit
	w := write{expires: until(now, ttl), keepExpiry: true, owes: l.t.owing(oweReplace)}
	if l.t.l1.update(k, w, now, func(stands []byte) ([]byte, bool) {
		var ok bool
		sum, ok = plus(stands, delta)
		if !ok {
			errno = abi.ErrInvalid
			return nil, false
		}
		digits := strconv.AppendInt(nil, sum, 10)
		return digits, l.allows(k, len(stands), len(digits))
	}) {
		return sum, 0
	}
	return 0, errno
}

// noSpace is a namespace that does not stand yet.
var noSpace space

// allows reports whether a namespace may take a value of some bytes in place of the one that stands there. The lock is
// held.
func (l *Local) allows(k id, stands, bytes int) bool {
	space := l.t.l1.spaces[k.ns]
	if space == nil {
		space = &noSpace
	}
	if space.entries[k.key] != nil {
		return space.bytes+bytes-stands <= l.bytes
	}
	return len(space.entries) < l.keys && space.bytes+len(k.key)+bytes+overhead <= l.bytes
}
