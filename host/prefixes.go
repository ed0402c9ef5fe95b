package host

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The cost of a question in addition to importFuel. A walk of the index visits the holders of a prompt's nodes, a lock
// and a clock: 1.5 us with 256 workers. A question about one worker costs a lock and a look, or a look at all workers
// of the pool if it is not a candidate. The hashes of a chain of the module's own are copied.
const (
	walkFuel     = 1500
	lookFuel     = 200
	strangerFuel = 20_000
)

// knownOf returns the row that a module names, and the source that answers questions about it, nil if there is none.
func knownOf(f *Frame, index uint64) (*abi.Row, Prefixes) {
	row := int(uint32(index))
	if f == nil || f.Prefixes == nil || row >= len(f.Rows) {
		return nil, nil
	}
	return &f.Rows[row], f.Prefixes
}

func importPrefixBest(in *instance, mem api.Memory, st []uint64) {
	ptr, size := uint32(st[0]), uint32(st[1])
	f := in.frame
	if f == nil || f.Prefixes == nil || len(f.Chain) == 0 {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	in.pay(walkFuel)
	worker, blocks := f.Prefixes.Best(f.Chain)
	if blocks == 0 {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	in.pay(int64(len(f.Rows)))
	row := slices.IndexFunc(f.Rows, func(r abi.Row) bool { return r.Worker == worker })
	if row < 0 {
		in.pay(strangerFuel)
	} else {
		in.pay(lookFuel)
	}
	h := f.Prefixes.Worker(worker)
	if h.Key == 0 { // it has just gone
		st[0] = errno(abi.ErrNotFound)
		return
	}
	h.Matched, h.Row = blocks, int32(row)
	st[0] = answer(in, mem, bytesOf(&h), ptr, size)
}

func importPrefixWorker(in *instance, mem api.Memory, st []uint64) {
	index, ptr, size := st[0], uint32(st[1]), uint32(st[2])
	row, known := knownOf(in.frame, index)
	if known == nil {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	in.pay(lookFuel)
	h := known.Worker(row.Worker)
	h.Key, h.Row, h.Matched = row.Key, int32(uint32(index)), row.Predicted
	st[0] = answer(in, mem, bytesOf(&h), ptr, size)
}

func importPrefixMatchKey(in *instance, mem api.Memory, st []uint64) {
	index, ptr, n := st[0], uint32(st[1]), uint32(st[2])
	row, known := knownOf(in.frame, index)
	if known == nil {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	b, ok := mem.Read(ptr, min(n, abi.MaxChain)*8)
	if !ok || n > abi.MaxChain {
		st[0] = errno(abi.ErrInvalid)
		return
	}
	st[0] = 0
	if n == 0 {
		return
	}
	in.pay(walkFuel)
	in.payBytes(8 * n)
	in.chain = in.chain[:0]
	for ; len(b) > 0; b = b[8:] {
		in.chain = append(in.chain, binary.LittleEndian.Uint64(b))
	}
	st[0] = min(uint64(known.MatchOne(in.chain, row.Worker)), math.MaxInt32)
}

func importCacheTiers(in *instance, mem api.Memory, st []uint64) {
	index, ptr, size := st[0], uint32(st[1]), uint32(st[2])
	row, known := knownOf(in.frame, index)
	if known == nil {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	in.pay(lookFuel)
	n := min(max(known.Tiers(row.Worker, &in.tiers), 0), maxTiers)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&in.tiers)), n*abi.TierSize)
	st[0] = answer(in, mem, b, ptr, size)
}

// bytesOf returns a Holder in its wire form, which is its layout in Go: abi's test checks that.
func bytesOf(h *abi.Holder) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(h)), abi.HolderSize) }
