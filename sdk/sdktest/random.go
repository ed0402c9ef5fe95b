package sdktest

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Randomize fills f with a request and n workers that a host could have written: every field varies over its range, and
// one value in eight is at an edge (nothing cached, all cached, no load, equal rows), where ties and clamps are.
func (f *Frame) Randomize(rng *rand.Rand, n int) {
	edge := func() bool { return rng.IntN(8) == 0 }
	block := float32(16)
	if edge() {
		block = 20 + 20*rng.Float32() // text blocks have a fractional number of tokens
	}
	tokens := uint32(math.Exp(rng.Float64() * math.Log(130_000)))
	if edge() {
		tokens, block = 0, 0
	}
	blocks := uint32(0)
	if block > 0 {
		blocks = uint32(float32(tokens) / block)
	}
	f.Header = abi.Header{
		Version: abi.Version, HeaderBytes: abi.HeaderSize, RowBytes: abi.RowSize, Rows: uint32(n),
		Seq: rng.Uint64(), Now: rng.Int64(), Random: rng.Uint64(),
		PromptTokens: tokens, PromptBlocks: blocks, BlockTokens: block,
		MaxTokens: rng.Uint32N(4096), Flags: rng.Uint32N(4), Model: rng.Uint64(), Session: rng.Uint64(), Tenant: rng.Uint64(),
		Bound: -1, BestRow: -1, Last: -1, ParentRow: -1, Lambda: 3 * rng.Float32(),
		C1: abi.PrefillSeconds * (.25 + rng.Float32()), C2: abi.ContextSeconds * rng.Float32(),
	}
	f.Header.Endpoint, f.Header.Caller = rng.Uint32N(abi.EndpointTokenize+1), rng.Uint64()
	f.Header.Configured = uint32(n) + rng.Uint32N(3)
	f.Header.Up = f.Header.Configured - rng.Uint32N(f.Header.Configured-uint32(n)+1)
	f.Header.Labels, f.Header.LabelsEpoch = rng.Uint32N(65), rng.Uint32N(4)
	if rng.IntN(2) == 0 {
		f.Header.Deadline = f.Header.Now + rng.Int64N(60e9)
	}
	if edge() {
		f.Header.Session = 0
	}
	if edge() {
		f.Header.Bound = int32(rng.IntN(n))
	}
	if rng.IntN(2) == 0 {
		f.Header.Turn, f.Header.SinceLast, f.Header.Last = 1+rng.Uint32N(50), 60*rng.Float32(), int32(rng.IntN(n+1))-1
		f.Header.Parent, f.Header.ParentRow = rng.Uint64(), int32(rng.IntN(n+1))-1
		f.Header.ExpectedOutput, f.Header.ExpectedTurns = rng.Uint32N(2000), rng.Uint32N(40)
		f.Header.Gap = 60 * rng.Float32()
	}
	if rng.IntN(2) == 0 {
		f.Header.InvBWL1 = 1e-5 * rng.Float32()
		if rng.IntN(2) == 0 {
			f.Header.InvBWL2 = 5e-5 * rng.Float32()
		}
	}
	if edge() {
		f.Header.Next = uint32(rng.IntN(n + 2))
	}
	if cap(f.Rows) < n {
		f.Rows = make([]abi.Row, n)
	}
	f.Rows = f.Rows[:n]
	busy := !edge()
	for i := range f.Rows {
		f.Rows[i] = row(rng, i, blocks, busy)
		if i > 0 && edge() {
			same := f.Rows[rng.IntN(i)]
			same.Worker, same.Key = f.Rows[i].Worker, f.Rows[i].Key
			f.Rows[i] = same
		}
		if r := &f.Rows[i]; r.GPU+r.L1+r.L2 > f.Header.BestMatch {
			f.Header.BestMatch, f.Header.BestRow = r.GPU+r.L1+r.L2, int32(i)
		}
	}
}

func row(rng *rand.Rand, i int, blocks uint32, busy bool) abi.Row {
	part := func(of uint32) uint32 {
		switch rng.IntN(3) {
		case 0:
			return 0
		case 1:
			return of
		}
		return rng.Uint32N(of + 1)
	}
	r := abi.Row{Worker: uint32(i), Key: key(i), Weight: 1, Slow: .5 + 2*rng.Float64(), Sent: uint64(rng.IntN(1000))}
	r.Predicted, r.GPU = part(blocks), part(blocks)
	r.L1 = part(blocks - r.GPU)
	r.L2 = part(blocks - r.GPU - r.L1)
	r.FreeGPU, r.ReuseGPU = 400_000*rng.Float32(), rng.Float32()
	r.FreeL1, r.ReuseL1 = float32(math.Inf(1)), rng.Float32()
	if rng.IntN(2) == 0 {
		r.FreeGPU, r.FreeL1 = 0, 1e6*rng.Float32()
	}
	if rng.IntN(8) == 0 {
		r.Weight = .25 + 4*rng.Float32()
	}
	if rng.IntN(16) == 0 {
		r.State = abi.RowSlowStart
	}
	r.Labels, r.Price, r.Rank = rng.Uint64()&rng.Uint64(), 4*rng.Float32(), rng.Uint32N(8)
	r.KVTokens = rng.Uint32N(1_000_000)
	r.State |= rng.Uint32() & (abi.RowStale | abi.RowLive | abi.RowAdapter | abi.RowAdapterWaiting | abi.RowAdaptersFull |
		abi.RowDecode | abi.RowJoins)
	vary(rng, reflect.ValueOf(&r).Elem(), ruled)
	if !busy {
		return r
	}
	r.FlightTokens, r.Cost = rng.Uint32N(500_000), 8*rng.Float64()
	r.HeldTokens, r.SharedTokens = rng.Uint32N(1_200_000), rng.Uint32N(60_000)
	r.InFlight, r.Running, r.Waiting = rng.Uint32N(64), rng.Uint32N(64), rng.Uint32N(16)
	r.PendingTokens, r.KVUsage = rng.Uint32N(200_000), rng.Float32()
	r.Wait, r.Load = 4*rng.Float64(), 1.2*rng.Float64()
	r.Lately, r.Pending = 40*rng.Float32(), 4*rng.Float32()
	r.TTFT, r.TPOT, r.MetricsAge = rng.Float32(), rng.Float32()/20, rng.Float32()
	return r
}

// ruled is how many bytes of a Row have a rule above. Fields that come behind them need none: see vary.
const ruled = 168

// vary gives each field of a struct that lies at an offset of at least from a random value that its type allows: from 0
// to 1 for a fraction, below 64 for a count.
func vary(rng *rand.Rand, v reflect.Value, from uintptr) {
	for i := range v.NumField() {
		if v.Type().Field(i).Offset < from {
			continue
		}
		switch f := v.Field(i); {
		case f.CanFloat():
			f.SetFloat(rng.Float64())
		case f.CanUint():
			f.SetUint(rng.Uint64N(64))
		}
	}
}

func encode(values map[string]string) []byte {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(values)) {
		b = abi.AppendOption(b, k, values[k])
	}
	return b
}
