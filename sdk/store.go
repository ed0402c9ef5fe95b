package sdk

import (
	"errors"
	"math"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// What the host answers when a key/value call does not succeed.
var (
	ErrNotFound  = errors.New("sdk: no such key")
	ErrConflict  = errors.New("sdk: the key holds another value; read it again")
	ErrInvalid   = errors.New("sdk: the key or value is too long or malformed")
	ErrForbidden = errors.New("sdk: the module may not use the store; add \"kv\" to its allow list")
	ErrLimit     = errors.New("sdk: the strategy's quota of 10,000 keys and 8 MiB is used up; let keys expire")
)

func errno(n int32) error {
	switch {
	case n >= 0:
		return nil
	case n == abi.ErrNotFound:
		return ErrNotFound
	case n == abi.ErrConflict:
		return ErrConflict
	case n == abi.ErrForbidden:
		return ErrForbidden
	case n == abi.ErrLimit:
		return ErrLimit
	}
	return ErrInvalid
}

// KVGet returns the value of a key in the module's own namespace of the host's store, from memory: it never waits. What
// only another router has written is there at a later call.
func KVGet(key string) ([]byte, error) { return KVInto(key, make([]byte, 256)) }

// KVInto is [KVGet] into memory of the caller's, so that a pick makes no garbage. The value begins where b does if b
// has room for it, else it has memory of its own. b must not be empty.
func KVInto(key string, b []byte) ([]byte, error) {
	for {
		n := imports.KVGet(key, b)
		if n < 0 {
			return nil, errno(n)
		}
		if int(n) <= len(b) {
			return b[:n], nil
		}
		b = make([]byte, n)
	}
}

// KVBatch gets the values of many keys in one call of the host, and keeps its memory for the next. The zero value is
// ready.
type KVBatch struct {
	keys, answer []byte
	values       [][]byte
}

// Get returns the values of keys, [abi.MaxMany] at most, in their order: nil for a key that is absent. They are valid
// until the next Get. A key costs some .3 us, as in [KVGet]; what is saved is the call, and the garbage.
func (m *KVBatch) Get(keys ...string) ([][]byte, error) {
	m.keys, m.values = m.keys[:0], m.values[:0]
	for _, key := range keys {
		m.keys = abi.AppendText(m.keys, key)
	}
	n := imports.KVGetMany(m.keys, m.answer)
	if int(n) > len(m.answer) {
		m.answer = make([]byte, n+n/2)
		n = imports.KVGetMany(m.keys, m.answer)
	}
	if int(n) > len(m.answer) { // longer values have come meanwhile
		n = abi.ErrConflict
	}
	if n < 0 {
		return nil, errno(n)
	}
	for b := m.answer[:n]; len(b) >= 4; {
		size := int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
		b = b[4:]
		if size < 0 {
			m.values = append(m.values, nil)
			continue
		}
		m.values = append(m.values, b[:size:size])
		b = b[size:]
	}
	return m.values, nil
}

// KVSwap sets key to value if it now holds old, else fails with [ErrConflict]. An empty old means that the key is
// absent. The key expires after so many seconds; 0 = the longest the host allows.
func KVSwap(key, old, value string, seconds int) error {
	return errno(imports.KVSwap(key, old, value, millis(seconds)))
}

// KVAdd adds delta to the counter at key and returns its value, over all instances of this router. Others that share
// its store see it a moment later; if two of them count at once, only one count remains, so give each router a key of
// its own. It fails if the module may not use the store, is over its quota, or the key holds no counter.
func KVAdd(key string, delta int64, seconds int) (int64, error) {
	v := imports.KVAdd(key, delta, millis(seconds))
	if v == math.MinInt64 {
		return 0, ErrForbidden
	}
	return v, nil
}

func millis(seconds int) int32 {
	return int32(min(max(int64(seconds), 0), math.MaxInt32/1000) * 1000)
}
