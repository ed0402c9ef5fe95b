package sdktest

import (
	"math"
	"strconv"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// Host answers what a strategy asks for beyond the frame, and keeps what it logs, counts and reports. The zero value is
// a host that knows no texts and has an empty store. It has no clock: keys never expire.
type Host struct {
	Session, Model, Tenant string
	Caller                 string
	Labels                 []string          // as tier=batch, by bit; Frame.Label adds one
	Headers                map[string]string // of the request, by names in lower case: those that the operator allows
	Workers                []string          // ids by row
	Matches                []int             // leading blocks by row, for PrefixMatch
	Hashes                 []uint64          // of the prompt's blocks
	Holders                []sdk.Holder      // by row, for PrefixWorker; PrefixBest is the one of the longest match
	Chains                 map[uint64][]int  // leading blocks by row of other prompts, by their first hash
	Tiers                  [][]sdk.Tier      // by row
	KV                     map[string]string
	Own                    map[uint64]float64 // the strategy's numbers by Row.Key: Frame.Run writes them into its rows
	Forbidden              bool               // the module may not use the store
	Level                  sdk.Level          // lines below it are dropped

	Lines   []Line // what was logged
	Wishes  []Wish // what was to be done with caches
	Metrics map[string]float64
	Errors  []string // the texts reported of failing calls
}

// Line is one line of the log.
type Line struct {
	Level sdk.Level
	Text  string
}

// Wish is one call of sdk.KeepCache, DropCache, Prefetch or CopyPrefix.
type Wish struct {
	What    int32 // abi.CacheKeep and its like
	Row     int
	Amount  int // milliseconds, or blocks
	Session string
}

// Use makes h the host until the test ends. Such tests must not run in parallel: a module, too, has one host.
func (h *Host) Use(t testing.TB) { t.Cleanup(h.Serve()) }

// Serve makes h the host until the caller calls end.
func (h *Host) Serve() (end func()) {
	imports.Current = fake{h}
	return imports.Reset
}

// fake keeps the raw functions off Host, whose fields have some of their names.
type fake struct{ h *Host }

func (f fake) Str(kind, index int32, b []byte) int32 {
	s := ""
	switch {
	case kind == abi.StrSession:
		s = f.h.Session
	case kind == abi.StrModel:
		s = f.h.Model
	case kind == abi.StrTenant:
		s = f.h.Tenant
	case kind == abi.StrCaller:
		s = f.h.Caller
	case kind == abi.StrLabel && index >= 0 && int(index) < len(f.h.Labels):
		s = f.h.Labels[index]
	case kind == abi.StrHeader && index >= 0 && int(index) <= len(b):
		s = f.h.Headers[string(b[:index])]
	case kind == abi.StrWorker && index >= 0 && int(index) < len(f.h.Workers):
		s = f.h.Workers[index]
	}
	if s == "" {
		return abi.ErrNotFound
	}
	return fill(b, s)
}

// fill writes s only if it fits, as the contract has it.
func fill(b []byte, s string) int32 {
	if len(s) <= len(b) {
		copy(b, s)
	}
	return int32(len(s))
}

func (f fake) PrefixMatch(row int32) int32 {
	if row < 0 || int(row) >= len(f.h.Matches) {
		return abi.ErrNotFound
	}
	return int32(f.h.Matches[row])
}

func (f fake) PrefixHash(block int32) uint64 {
	if block < 0 || int(block) >= len(f.h.Hashes) {
		return 0
	}
	return f.h.Hashes[block]
}

func (f fake) PrefixBest(h *abi.Holder) int32 {
	for i := range f.h.Holders {
		if f.h.Holders[i].Matched > h.Matched {
			*h = f.h.Holders[i]
		}
	}
	if h.Matched == 0 {
		return abi.ErrNotFound
	}
	return abi.HolderSize
}

func (f fake) PrefixWorker(row int32, h *abi.Holder) int32 {
	if row < 0 || int(row) >= len(f.h.Holders) {
		return abi.ErrNotFound
	}
	*h = f.h.Holders[row]
	return abi.HolderSize
}

func (f fake) PrefixMatchKey(row int32, hashes []uint64) int32 {
	if len(hashes) == 0 || row < 0 || int(row) >= len(f.h.Chains[hashes[0]]) {
		return abi.ErrNotFound
	}
	return int32(min(f.h.Chains[hashes[0]][row], len(hashes)))
}

func (f fake) CacheTiers(row int32, tiers []abi.Tier) int32 {
	if row < 0 || int(row) >= len(f.h.Tiers) {
		return abi.ErrNotFound
	}
	copy(tiers, f.h.Tiers[row])
	return int32(len(f.h.Tiers[row]) * abi.TierSize)
}

func (f fake) KVGet(key string, b []byte) int32 {
	if f.h.Forbidden {
		return abi.ErrForbidden
	}
	v, ok := f.h.KV[key]
	if !ok {
		return abi.ErrNotFound
	}
	return fill(b, v)
}

func (f fake) KVGetMany(keys, b []byte) int32 {
	if f.h.Forbidden {
		return abi.ErrForbidden
	}
	var all []byte
	for len(keys) > 0 {
		key, rest, ok := abi.NextText(keys)
		if !ok {
			return abi.ErrInvalid
		}
		keys = rest
		if v, ok := f.h.KV[key]; ok {
			all = abi.AppendText(all, v)
		} else {
			all = append(all, 0xff, 0xff, 0xff, 0xff) // abi.ErrNotFound
		}
	}
	return fill(b, string(all))
}

func (f fake) SetOwn(key uint64, value float64) int32 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return abi.ErrInvalid
	}
	if f.h.Own == nil {
		f.h.Own = map[uint64]float64{}
	}
	f.h.Own[key] = value
	return 0
}

func (f fake) Own(key uint64) float64 { return f.h.Own[key] }

func (f fake) Cache(what, row int32, amount uint32, session string) int32 {
	if len(f.h.Wishes) == abi.MaxWishes {
		return abi.ErrLimit
	}
	f.h.Wishes = append(f.h.Wishes, Wish{What: what, Row: int(row), Amount: int(amount), Session: session})
	return 0
}

func (f fake) KVSwap(key, old, value string, _ int32) int32 {
	if f.h.Forbidden {
		return abi.ErrForbidden
	}
	if v, ok := f.h.KV[key]; ok != (old != "") || v != old {
		return abi.ErrConflict
	}
	f.put(key, value)
	return 0
}

func (f fake) KVAdd(key string, delta int64, _ int32) int64 {
	if f.h.Forbidden {
		return math.MinInt64
	}
	v, err := strconv.ParseInt(f.h.KV[key], 10, 64)
	if err != nil && f.h.KV[key] != "" {
		return math.MinInt64
	}
	f.put(key, strconv.FormatInt(v+delta, 10))
	return v + delta
}

func (f fake) put(key, value string) {
	if f.h.KV == nil {
		f.h.KV = map[string]string{}
	}
	f.h.KV[key] = value
}

func (f fake) Log(level int32, text string) {
	if sdk.Level(level) >= f.h.Level {
		f.h.Lines = append(f.h.Lines, Line{sdk.Level(level), text})
	}
}

func (f fake) LogLevel() int32 { return int32(f.h.Level) }

func (f fake) Metric(name string, value float64) {
	if f.h.Metrics == nil {
		f.h.Metrics = map[string]float64{}
	}
	f.h.Metrics[name] += value
}

func (f fake) Error(text string) { f.h.Errors = append(f.h.Errors, text) }
