package tier

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// batch is how many debts are paid in one round trip.
	batch = 256
	// scanned is about how many keys a page of Redis's content has.
	scanned = 512
	// ahead is the longest value that is read ahead: a session has some 100 bytes. With scanned it bounds a page to 4 MiB.
	ahead = 8 << 10
)

// send gives Redis what it is owed in one round trip. It calls got for each debt that Redis has answered, and returns
// an error if Redis did not answer all of them.
func (r *remote) send(ctx context.Context, debts []owed, got func(*owed, reply)) error {
	if len(debts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	answers := make([]*redis.Cmd, len(debts))
	_, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range debts {
			answers[i] = r.queue(ctx, p, &debts[i])
		}
		return nil
	})
	for i, a := range answers {
		res, bad := a.Slice()
		if bad != nil {
			continue
		}
		if reply, bad := r.parse(res); bad == nil && reply.kind != kindForgot {
			got(&debts[i], reply)
		}
	}
	return err
}

// queue adds a debt to a batch. Scripts go whole: a restarted Redis knows none, and a batch cannot ask twice.
func (r *remote) queue(ctx context.Context, p redis.Pipeliner, o *owed) *redis.Cmd {
	keys := []string{r.keys.key(o.id), r.keys.epoch()}
	epoch := r.epoch.forDebt()
	var base any = ""
	if o.base != nil {
		base = marked(o.base)
	}
	switch o.owes {
	case oweDelete:
		return scriptDelete.Eval(ctx, p, keys, millis(o.ttl), "", epoch)
	case oweDrop:
		return scriptDelete.Eval(ctx, p, keys, millis(o.ttl), base, epoch)
	case oweTouch:
		return scriptProlong.Eval(ctx, p, keys, marked(o.value), millis(o.ttl), epoch)
	case oweReplace:
		return scriptReplace.Eval(ctx, p, keys, base, marked(o.value), millis(o.ttl), epoch)
	}
	return scriptSet.Eval(ctx, p, keys, marked(o.value), millis(o.ttl), epoch)
}

// readPage reads some of the values that stand in Redis and calls got for each. It skips tombstones, what is not ours,
// and values over ahead. next is the cursor of the next page; 0 is the end.
func (r *remote) readPage(ctx context.Context, cursor uint64, got func(id, reply)) (next uint64, err error) {
	holder, err := r.c.Holder(ctx, r.keys.epoch())
	if err != nil {
		return cursor, err
	}
	names, next, err := holder.Scan(ctx, cursor, r.keys.pattern(), scanned).Result()
	if err != nil || len(names) == 0 {
		return next, err
	}
	values := make([]*redis.StringCmd, len(names))
	ttls := make([]*redis.DurationCmd, len(names))
	_, err = r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			values[i] = p.GetRange(ctx, name, 0, ahead)
			ttls[i] = p.PTTL(ctx, name)
		}
		return nil
	})
	if err != nil && ctx.Err() != nil && values[len(names)-1].Err() != nil {
		return next, err
	}
	for i, name := range names {
		k, ours := r.keys.id(name)
		if v, ok := valueOf(values[i].Val(), ttls[i].Val()); ours && ok {
			got(k, v)
		}
	}
	return next, nil
}

// valueOf returns the value of what GETRANGE and PTTL answer. ok is false for what is gone, deleted, not ours or too
// long.
func valueOf(text string, ttl time.Duration) (v reply, ok bool) {
	if text == "" || text[0] != markValue || len(text) > ahead || ttl == -2 { // gone between the two answers
		return reply{}, false
	}
	if ttl == 0 { // its last millisecond: a reply's 0 is no expiry
		ttl = time.Millisecond
	}
	return reply{kind: kindValue, value: []byte(text[1:]), ttl: max(ttl, 0)}, true
}
