package tier

import "time"

// owed is what Redis has to be given of an entry, as it stood at a version.
type owed struct {
	entry *entry
	id
	value, base []byte
	expires     int64
	ttl         time.Duration
	owes        debt
	version     uint32
}

func owedOf(e *entry, d debt, now int64) owed {
	return owed{
		entry: e, id: e.id(), value: e.value, base: e.base, expires: e.expires, ttl: left(now, e.expires),
		owes: d, version: e.version,
	}
}
