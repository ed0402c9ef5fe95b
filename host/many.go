package host

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// importKVGetMany answers for many keys at once. Each key costs as much as a kv_get without its call, and the answer
// costs its bytes.
func importKVGetMany(in *instance, mem api.Memory, st []uint64) {
	keys, e := readKeys(in, mem, uint32(st[0]), uint32(st[1]))
	if e != 0 {
		st[0] = errno(e)
		return
	}
	in.many = in.many[:0]
	for _, key := range keys {
		in.pay(kvGetFuel)
		v, ok := in.kv.Get(in.program.name, key)
		if !ok {
			in.many = binary.LittleEndian.AppendUint32(in.many, uint32(errno(abi.ErrNotFound)))
			continue
		}
		in.payBytes(uint32(len(v)))
		in.many = binary.LittleEndian.AppendUint32(in.many, uint32(len(v)))
		if len(in.many)+len(v) > maxMany {
			st[0] = errno(abi.ErrLimit)
			return
		}
		in.many = append(in.many, v...)
	}
	st[0] = answer(in, mem, in.many, uint32(st[2]), uint32(st[3]))
}

// Bounds of one kv_get_many: the bytes of its answer, and of its keys with their lengths.
const (
	maxMany     = 1 << 20
	maxManyKeys = abi.MaxMany * (4 + maxKey)
)

// readKeys reads keys, each a length and its bytes. They are copied: the guest may change its memory meanwhile.
func readKeys(in *instance, mem api.Memory, ptr, n uint32) ([]string, int32) {
	if in.kv == nil {
		return nil, abi.ErrForbidden
	}
	b, ok := mem.Read(ptr, n)
	if !ok || n > maxManyKeys {
		return nil, abi.ErrInvalid
	}
	in.payBytes(n)
	var keys []string
	for len(b) > 0 {
		key, rest, ok := abi.NextText(b)
		if !ok || key == "" || len(key) > maxKey || len(keys) == abi.MaxMany {
			return nil, abi.ErrInvalid
		}
		keys, b = append(keys, key), rest
	}
	return keys, 0
}
