package tier

import (
	"context"
	"fmt"
)

// readAhead reads into memory what stands in Redis, and returns how many values that were.
func readAhead(ctx context.Context, t *tiers) (int, error) {
	if t.l2 == nil {
		return 0, nil
	}
	t.l2.readEpoch(ctx)
	n := 0
	for cursor := uint64(0); ; {
		next, err := t.l2.readPage(ctx, cursor, func(k id, r reply) {
			if !t.l1.fits(k.key, r.value) {
				return
			}
			now := t.now()
			if _, ok := t.l1.put(k, write{value: r.value, expires: until(now, r.ttl)}, now); ok {
				n++
			}
		})
		if err != nil {
			if ctx.Err() != nil {
				return n, nil
			}
			return n, fmt.Errorf("tier: Redis at %s cannot be read ahead: %w", t.l2.addr, err)
		}
		cursor = next
		if cursor == 0 || t.l1.hasEvicted() {
			return n, nil
		}
	}
}
