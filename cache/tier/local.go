package tier

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Local is the store for those who may not wait: strategies, in the middle of a choice. Memory answers, always. What it changes
// is owed to Redis and told by Run, where it gives way to what another router has written meanwhile; what memory does not
// hold, or has not heard of for a second, is asked for in the background and there at a later call. None of this counts for the
// breaker: a strategy that floods the store takes nothing from sessions.
type Local struct {
	s      *Store
	keys   int // a namespace may hold
	bytes  int // of a namespace: keys, values and overhead
	wanted chan wanted
}

type wanted struct{ ns, key string }

const (
	// wantedMost bounds the questions that wait; what is over it is asked for at a later call.
	wantedMost = 1024
	// wantedPause is between two questions, so that Redis has time for sessions.
	wantedPause = time.Millisecond
)

// Local returns a view of the store in which each namespace may hold so many keys and bytes. Its Run is to be called.
func (s *Store) Local(keys, bytes int) *Local {
	return &Local{s: s, keys: keys, bytes: min(bytes, s.l1.part), wanted: make(chan wanted, wantedMost)}
}

// Run asks Redis for what memory did not hold, until ctx is done.
func (l *Local) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-l.wanted:
			l.fetch(ctx, w)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wantedPause):
		}
	}
}

// fetch asks for one key, without a word to the breaker.
func (l *Local) fetch(ctx context.Context, w wanted) {
	c := l.s.begin(w.ns, w.key)
	if c.alone() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	payload, ttl := c.restore()
	r := c.l2
	res, err := scriptRead.Run(ctx, r.c, []string{r.key(w.ns, w.key), r.prefix + epochKey}, payload, ttl, r.epoch.known()).Slice()
	if err != nil {
		return
	}
	if got, err := r.parse(res); err == nil && got.kind != 'u' {
		c.learn(got, false)
	}
}

// Get returns what memory holds.
func (l *Local) Get(ns, key string) ([]byte, bool) {
	s := l.s
	now := s.now()
	stale := now - int64(fresh)
	v := s.l1.look(ns, key, now, stale)
	if s.shared() && v.owes == paid && (!v.live || v.checked < stale) {
		select {
		case l.wanted <- wanted{strings.Clone(ns), key}:
		default:
		}
	}
	if !v.live {
		s.n.misses.Add(1)
		return nil, false
	}
	s.n.l1Hits.Add(1)
	return v.value, true
}

// CompareAndSwap stores new if memory holds old; a nil old means that it holds nothing. It answers 0, [abi.ErrConflict] or
// [abi.ErrLimit].
func (l *Local) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) int32 {
	s, answer := l.s, abi.ErrLimit
	now := s.now()
	if !s.l1.fits(key, new) {
		return abi.ErrLimit
	}
	if s.l1.swap(ns, key, until(now, ttl), now, s.owing(oweSwap), func(stands []byte) ([]byte, bool, bool) {
		if (stands != nil) != (old != nil) || !bytes.Equal(stands, old) {
			answer = abi.ErrConflict
			return nil, false, false
		}
		return append([]byte{}, new...), false, l.room(ns, key, stands, len(new))
	}) {
		return 0
	}
	return answer
}

// Add adds delta to a counter of this router and returns the sum, and 0, [abi.ErrInvalid] if what stands there is no number or the
// sum overflows, or [abi.ErrLimit]. A counter that is not there begins at 0 and lives for ttl.
func (l *Local) Add(ns, key string, delta int64, ttl time.Duration) (sum int64, errno int32) {
	s := l.s
	now := s.now()
	errno = abi.ErrLimit
	if s.l1.swap(ns, key, until(now, ttl), now, s.owing(oweSwap), func(stands []byte) ([]byte, bool, bool) {
		var ok bool
		if sum, ok = plus(stands, delta); !ok {
			errno = abi.ErrInvalid
			return nil, false, false
		}
		digits := strconv.AppendInt(nil, sum, 10)
		return digits, true, l.room(ns, key, stands, len(digits))
	}) {
		return sum, 0
	}
	return 0, errno
}

// noSpace is a namespace that does not stand yet.
var noSpace space

// room says whether a namespace may take a value in place of what stands there. The lock is held.
func (l *Local) room(ns, key string, stands []byte, value int) bool {
	space := l.s.l1.spaces[ns]
	if space == nil {
		space = &noSpace
	}
	if space.entries[key] != nil {
		return space.bytes+value-len(stands) <= l.bytes
	}
	return len(space.entries) < l.keys && space.bytes+len(key)+value+overhead <= l.bytes
}
