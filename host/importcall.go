package host

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// importFunc is one import. mem is the caller's memory.
type importFunc func(in *instance, mem api.Memory, stack []uint64)

// Limits of what a module may write and keep.
const (
	maxLine  = 1 << 10  // bytes of log, error and standard error
	maxKey   = 512      // bytes of a key in the store
	maxValue = 64 << 10 // bytes of a value in the store
)

// importFuel is the price of calling an import: 45-60 ns, which is what 50 fuel of a loop cost. Bytes cost as in
// memory.copy.
const importFuel = 50

// The measured additional cost of expensive imports: a look into the store 0.3 us, a change 0.8; a line for the log 3
// us if it is written, and a lock if not; a metric a lock and a map.
const (
	kvGetFuel  = 300
	kvPutFuel  = 800
	logFuel    = 3000
	lockedFuel = 100
)

// wrap makes f callable by wazero. Reflection (WithFunc) costs nine times as much.
func wrap(f importFunc) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		in := callerOf(ctx, mod)
		in.pay(importFuel)
		f(in, mod.Memory(), stack)
	}
}

// callerOf finds the instance that calls.
func callerOf(ctx context.Context, mod api.Module) *instance {
	in := ctx.Value(instanceKey{}).(*instance)
	if in.fuel == nil { // start code runs before instantiation has returned
		in.fuel, _ = mod.ExportedGlobal(meter.Global).(api.MutableGlobal)
	}
	return in
}

func errno(e int32) uint64 { return uint64(uint32(e)) }

// answer writes b to the guest's buffer if it fits, and gives its length.
func answer[T string | []byte](in *instance, mem api.Memory, b T, ptr, size uint32) uint64 {
	n := uint32(len(b))
	if n > size {
		return uint64(n)
	}
	to, ok := mem.Read(ptr, n)
	if !ok {
		return errno(abi.ErrInvalid)
	}
	in.payBytes(n)
	copy(to, b)
	return uint64(n)
}
