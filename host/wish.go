package host

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// maxSession bounds the name of a session that a module drops, in bytes.
const maxSession = 256

func importCache(in *instance, mem api.Memory, st []uint64) {
	w := Wish{What: int32(st[0]), Row: int(int32(st[1])), Amount: uint32(st[2])}
	name, ok := mem.Read(uint32(st[3]), uint32(st[4]))
	f, e := in.frame, int32(0)
	in.pay(lockedFuel)
	switch {
	case f == nil:
		e = abi.ErrNotFound
	case w.What < abi.CacheKeep || w.What > abi.CacheCopy || !ok || len(name) > maxSession:
		e = abi.ErrInvalid
	case w.What >= abi.CachePrefetch && (w.Row < 0 || w.Row >= f.Choices()):
		e = abi.ErrNotFound
	case len(f.wishes) == abi.MaxWishes:
		e = abi.ErrLimit
	default:
		w.Session = string(name)
		f.wishes = append(f.wishes, w)
	}
	st[0] = errno(e)
}
