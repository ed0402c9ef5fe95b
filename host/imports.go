package host

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk/abi"
)

// All that a module may touch stands in this file, in own.go, prefixes.go, many.go, zone.go, and for what Go's runtime
// wants at start in wasi.go.
//
// Every import takes its arguments from the stack and puts its result there, pays fuel, checks every address, and
// answers with an errno. None keeps a guest's bytes without copying them.

var importFuncs = map[string]importFunc{
	"str": importStr, "prefix_match": importPrefixMatch, "prefix_hash": importPrefixHash,
	"kv_get": importKVGet, "kv_get_many": importKVGetMany, "kv_cas": importKVCAS, "kv_incr": importKVIncr,
	"prefix_best": importPrefixBest, "prefix_worker": importPrefixWorker, "prefix_match_key": importPrefixMatchKey,
	"cache_tiers": importCacheTiers, "own": importOwn, "own_of": importOwnOf, "zone_offset": importZoneOffset,
	"cache": importCache,
	"log":   importLog, "log_level": importLogLevel, "metric": importMetric, "error": importError,
}

// instantiateImports puts the import modules into rt, once for all strategies.
func instantiateImports(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(abi.Module)
	for _, f := range abi.Imports {
		code := wrap(importFuncs[f.Name])
		b.NewFunctionBuilder().WithGoModuleFunction(code, valueTypes(f.Params), valueTypes(f.Results)).Export(f.Name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	refill := api.GoModuleFunc(func(ctx context.Context, mod api.Module, _ []uint64) { callerOf(ctx, mod).refill() })
	if _, err := rt.NewHostModuleBuilder(meter.Module).NewFunctionBuilder().WithGoModuleFunction(refill, nil, nil).
		Export(meter.Refill).Instantiate(ctx); err != nil {
		return err
	}
	return instantiateWASI(ctx, rt)
}

// importable gives the signature of an import that a module may have.
func importable(module, name string) (string, bool) {
	switch module {
	case meter.Module: // the meter put it in, and refuses a module that has it
		return signature(nil, nil), name == meter.Refill
	case abi.Module:
		for _, f := range abi.Imports {
			if f.Name == name {
				return signatureOf(f), true
			}
		}
	case wasiModule:
		if f, ok := wasiFuncs[name]; ok {
			return signature(f.params, f.results), true
		}
	}
	return "", false
}

func importStr(in *instance, mem api.Memory, st []uint64) {
	kind, index, ptr, size := int32(st[0]), int(uint32(st[1])), uint32(st[2]), uint32(st[3])
	f := in.frame
	if f == nil { // outside of a pick there is no request
		st[0] = errno(abi.ErrNotFound)
		return
	}
	var s string
	switch kind {
	case abi.StrSession:
		s = f.Session
	case abi.StrModel:
		s = f.Model
	case abi.StrTenant:
		s = f.Tenant
	case abi.StrCaller:
		s = f.Caller
	case abi.StrWorker:
		if index >= len(f.WorkerIDs) || index >= len(f.Rows) {
			st[0] = errno(abi.ErrNotFound)
			return
		}
		s = f.WorkerIDs[index]
	case abi.StrLabel:
		if index >= len(f.Labels) || index >= int(f.Header.Labels) {
			st[0] = errno(abi.ErrNotFound)
			return
		}
		s = f.Labels[index]
	case abi.StrHeader:
		value, e := in.header(mem, ptr, uint32(index))
		if e != 0 {
			st[0] = errno(e)
			return
		}
		s = value
	default:
		st[0] = errno(abi.ErrInvalid)
		return
	}
	st[0] = answer(in, mem, s, ptr, size)
}

// maxHeaderName bounds the name of a header that a module asks for, in bytes.
const maxHeaderName = 128

// header returns the request's header whose name of n bytes stands at ptr, if the strategy may see it.
func (in *instance) header(mem api.Memory, ptr, n uint32) (string, int32) {
	name, ok := mem.Read(ptr, min(n, maxHeaderName))
	if !ok || n == 0 || n > maxHeaderName {
		return "", abi.ErrInvalid
	}
	in.pay(lookFuel)
	for _, allowed := range in.program.headers {
		if !sameHeader(name, allowed) {
			continue
		}
		if in.frame.Headers != nil {
			if value, ok := in.frame.Headers.Header(allowed); ok {
				return value, 0
			}
		}
		return "", abi.ErrNotFound
	}
	in.refuse("headers:" + strings.ToLower(string(name)))
	return "", abi.ErrForbidden
}

// refuse counts a call of the module that allow does not permit.
func (in *instance) refuse(entry string) {
	in.pay(lockedFuel)
	in.program.refused.refuse(entry, in.program.log)
}

// sameHeader compares a name that a module wrote with one in lower case, without a copy.
func sameHeader(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func importPrefixMatch(in *instance, _ api.Memory, st []uint64) {
	row := int(uint32(st[0]))
	if in.frame == nil || row >= len(in.frame.Rows) {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	r := &in.frame.Rows[row]
	st[0] = min(uint64(r.GPU)+uint64(r.L1)+uint64(r.L2), math.MaxInt32)
}

func importPrefixHash(in *instance, _ api.Memory, st []uint64) {
	block := int(uint32(st[0]))
	st[0] = 0
	if in.frame != nil && block < len(in.frame.Chain) {
		st[0] = in.frame.Chain[block]
	}
}

// store checks what all kv imports check. The key is copied: the guest may change its memory meanwhile.
func (in *instance) store(mem api.Memory, ptr, n uint32, price int64) (string, int32) {
	if in.kv == nil {
		if !in.program.store {
			in.refuse("kv")
		}
		return "", abi.ErrForbidden
	}
	if n == 0 || n > maxKey {
		return "", abi.ErrInvalid
	}
	b, ok := mem.Read(ptr, n)
	if !ok {
		return "", abi.ErrInvalid
	}
	in.pay(price)
	in.payBytes(n)
	return string(b), 0
}

func importKVGet(in *instance, mem api.Memory, st []uint64) {
	key, e := in.store(mem, uint32(st[0]), uint32(st[1]), kvGetFuel)
	if e != 0 {
		st[0] = errno(e)
		return
	}
	v, ok := in.kv.Get(in.program.name, key)
	if !ok {
		st[0] = errno(abi.ErrNotFound)
		return
	}
	st[0] = answer(in, mem, v, uint32(st[2]), uint32(st[3]))
}

func importKVCAS(in *instance, mem api.Memory, st []uint64) {
	key, e := in.store(mem, uint32(st[0]), uint32(st[1]), kvPutFuel)
	oldLen, newLen, ttl := uint32(st[3]), uint32(st[5]), int32(st[6])
	oldV, ok1 := mem.Read(uint32(st[2]), oldLen)
	newV, ok2 := mem.Read(uint32(st[4]), newLen)
	switch {
	case e != 0:
	case !ok1 || !ok2 || oldLen > maxValue || newLen > maxValue || ttl < 0:
		e = abi.ErrInvalid
	default:
		in.payBytes(oldLen + newLen)
		var old []byte
		if oldLen > 0 {
			old = append(old, oldV...)
		}
		e = in.kv.CompareAndSwap(in.program.name, key, old, append([]byte{}, newV...), time.Duration(ttl)*time.Millisecond)
	}
	st[0] = errno(e)
}

func importKVIncr(in *instance, mem api.Memory, st []uint64) {
	key, e := in.store(mem, uint32(st[0]), uint32(st[1]), kvPutFuel)
	delta, ttl := int64(st[2]), int32(st[3])
	st[0] = 1 << 63 // math.MinInt64
	if e != 0 || ttl < 0 {
		return
	}
	if v, e := in.kv.Add(in.program.name, key, delta, time.Duration(ttl)*time.Millisecond); e == 0 {
		st[0] = uint64(v)
	}
}

// line reads up to maxLine bytes of a text that the module passes.
func (in *instance) line(mem api.Memory, ptr, n uint32) (string, bool) {
	b, ok := mem.Read(ptr, min(n, maxLine))
	if !ok {
		return "", false
	}
	in.payBytes(uint32(len(b)))
	return string(b), true
}

// levels are abi's levels as slog names them.
var levels = [...]slog.Level{
	abi.LevelDebug: slog.LevelDebug,
	abi.LevelInfo:  slog.LevelInfo,
	abi.LevelWarn:  slog.LevelWarn,
	abi.LevelError: slog.LevelError,
}

func importLog(in *instance, mem api.Memory, st []uint64) {
	level := levels[min(max(int32(st[0]), abi.LevelDebug), abi.LevelError)]
	in.pay(lockedFuel)
	if !in.program.log.Enabled(in.ctx, level) || !in.program.lines.allow() {
		return
	}
	in.pay(logFuel)
	if text, ok := in.line(mem, uint32(st[1]), uint32(st[2])); ok {
		in.program.log.Log(in.ctx, level, "strategy says", "id", in.request(), "text", text)
	}
}

// request is the id of the request that is being decided, "" between picks.
func (in *instance) request() string {
	if in.frame == nil {
		return ""
	}
	return in.frame.Request
}

// printed logs what the module wrote to its standard output or error in a pick that ended well, and forgets it.
func (in *instance) printed(f *Frame) {
	p := in.program
	if f.Request != "" && p.log.Enabled(in.ctx, slog.LevelDebug) && p.lines.allow() { // else it is the self-test's
		p.log.Debug("strategy prints", "id", f.Request, "text", strings.TrimSpace(in.said))
	}
	in.said = ""
}

func importLogLevel(in *instance, _ api.Memory, st []uint64) {
	for l, level := range levels {
		if in.program.log.Enabled(in.ctx, level) {
			st[0] = uint64(l)
			return
		}
	}
	st[0] = uint64(abi.LevelError + 1) // nothing is logged
}

func importMetric(in *instance, mem api.Memory, st []uint64) {
	n, v := uint32(st[1]), math.Float64frombits(st[2])
	name, ok := mem.Read(uint32(st[0]), n)
	if n == 0 || n > maxMetric || !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return
	}
	in.pay(lockedFuel)
	in.program.metrics.add(name, v)
}

func importError(in *instance, mem api.Memory, st []uint64) {
	if text, ok := in.line(mem, uint32(st[0]), uint32(st[1])); ok {
		in.said = text
	}
}
