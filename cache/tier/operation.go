package tier

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// fresh is for how long L1 answers by itself for a value that Redis shares with other routers: a session closed on one
	// is unknown to the others after at most that. One round trip a second for each session in use.
	fresh = time.Second
	// minTombstone is how long L1 remembers a deletion that Redis has yet to be given, where the expiry is not known here.
	minTombstone = time.Minute
	// maxTombstone is how long a deletion of a value without expiry is remembered.
	maxTombstone = 24 * time.Hour
)

// errForgot means that Redis has lost what it knew, and routers that still hold it have not put it back yet.
var errForgot = errors.New("tier: Redis has lost its data, and is being told again")

// operation is what one call of a store does with one value.
type operation struct {
	*tiers
	id
	began  int64
	seen   seen // what L1 knew, or what Redis has answered since
	lost   bool // Redis did not answer: it is not asked again in this operation
	sure   bool // Redis answered: seen is what it has
	ctx    context.Context
	cancel context.CancelFunc
}

// begin reads what L1 knows of a value.
func (t *tiers) begin(k id) operation {
	o := operation{tiers: t, id: k, began: t.now()}
	stale := int64(math.MinInt64)
	if t.shared() {
		stale = o.began - int64(fresh)
	}
	o.seen = t.l1.read(k, o.began, stale)
	return o
}

// end frees the deadline.
func (o *operation) end() {
	if o.cancel != nil {
		o.cancel()
	}
}

// deadline starts the one clock of this operation's time with Redis.
func (o *operation) deadline() context.Context {
	if o.ctx == nil {
		o.ctx, o.cancel = context.WithTimeout(context.Background(), o.l2.timeout)
	}
	return o.ctx
}

// alone reports whether L1 decides without Redis: none is configured, or it is lost, or it does not have this value's
// last change yet.
func (o *operation) alone() bool { return o.seen.owes != paid || o.lost || !o.shared() }

// ttl returns what is left of the value's life; 0 if it does not end.
func (o *operation) ttl() time.Duration { return left(o.began, o.seen.expires) }

// ask runs a script on the value.
func (o *operation) ask(script *redis.Script, args ...any) (reply, error) {
	r, err := o.l2.ask(o.deadline(), script, o.id, args...)
	if err == nil && r.kind == kindForgot {
		err = errForgot
	}
	o.lost = err != nil
	o.sure = err == nil
	return r, err
}

// backup returns the value that Redis restores if it has lost it.
func (o *operation) backup() (payload []byte, ttl int64) {
	if !o.seen.live {
		return nil, 0
	}
	return marked(o.seen.value), millis(o.ttl())
}

// adopt updates L1 and o.seen by what Redis answered. changed is true if this call itself wrote the value to Redis.
func (o *operation) adopt(r reply, changed bool) {
	known := o.seen.live || o.seen.owes.tombstone()
	if r.kind == kindRestored {
		o.l2.restored.Add(1)
	}
	o.seen.live = r.holds()
	o.seen.value = nil
	if o.seen.live {
		o.seen.value = r.value
	}
	o.seen.expires = until(o.began, r.ttl)
	a := answer{ticket: o.seen.ticket, value: o.seen.value, expires: o.seen.expires, changed: changed}
	o.l1.adopt(o.id, a, o.began)
	if !known && o.seen.live {
		o.l1.adoptInDoubt(o.id, a, o.began)
	}
}

// refresh asks Redis for a value that L1 does not have, or that Redis has not confirmed for a while.
func (o *operation) refresh() {
	if o.alone() || o.seen.live && o.began-o.seen.checked < int64(fresh) {
		return
	}
	payload, ttl := o.backup()
	if r, err := o.ask(scriptRead, payload, ttl); err == nil {
		o.adopt(r, false)
	}
}

// setHereIfAbsent stores a value in L1 if none stands there. It gives way to what Redis has.
func (o *operation) setHereIfAbsent(value []byte, ttl time.Duration) (now []byte, set bool) {
	w := write{expires: until(o.began, ttl), owes: o.owing(oweReplace)}
	set = o.l1.update(o.id, w, o.began, func(old []byte) ([]byte, bool) {
		now = old
		return append([]byte{}, value...), old == nil
	})
	if !set {
		return now, false
	}
	if o.shared() { // while Redis is lost the pulse will do
		o.wakeHealer()
	}
	return value, true
}

// swap stores new if old stands there (nil: if nothing does). If Redis does not answer, new is owed to it as later.
func (o *operation) swap(old, new []byte, ttl time.Duration, later debt) bool {
	if !o.l1.fits(o.key, new) {
		return false
	}
	o.refresh()
	if !o.alone() {
		var before []byte
		if old != nil {
			before = marked(old)
		}
		if r, err := o.ask(scriptSwap, before, marked(new), millis(ttl)); err == nil {
			set := r.kind == kindStored
			if set {
				r.value = append([]byte{}, new...)
			}
			o.adopt(r, set)
			return set
		}
	}
	w := write{expires: until(o.began, ttl), owes: o.owing(later)}
	return o.l1.update(o.id, w, o.began, func(now []byte) ([]byte, bool) {
		return append([]byte{}, new...), (now != nil) == (old != nil) && bytes.Equal(now, old)
	})
}

// tombstoneLife returns for how long a deletion of the value is remembered.
func (o *operation) tombstoneLife() time.Duration {
	switch {
	case !o.seen.live:
		return minTombstone
	case o.seen.expires == never:
		return maxTombstone
	}
	return o.ttl()
}
