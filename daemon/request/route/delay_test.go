package route

import (
	"math"
	"testing"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestDelay: what an answer costs at a prefiller grows with the prompts of the whole pool, at each worker with the KV in
// use, and a prompt costs what it holds up. Without prefillers that answer nothing of it is filled.
func TestDelay(t *testing.T) {
	frame := func() *host.Frame {
		f := &host.Frame{Rows: make([]abi.Row, 3)}
		f.Header.ExpectedOutput, f.Header.PromptTokens, f.Header.BlockTokens, f.Header.C1 = 100, 1000, 16, 1e-4
		for i := range f.Rows {
			f.Rows[i] = abi.Row{Slow: 1, KVTokens: 1000, TPOT: .01, MetricsAge: 1, State: abi.RowDecode}
		}
		f.Rows[0].State = 0
		return f
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f := frame()
	f.Rows[1].Load, f.Rows[2].HeldTokens = .5, 500
	fillDelay(f, &Ask{}, Answer)
	near("not shared", f.Rows[0].Delay, 0)
	fillDelay(f, &Ask{Shared: true}, Answer)
	near("a prefiller, for a load of half of it", f.Rows[0].Delay, 1)
	near("a decoder", f.Rows[1].Delay, 0)
	fillDelay(f, &Ask{Shared: true}, Whole)
	near("a prefiller, of a request that is not split", f.Rows[0].Delay, 1)
	near("a decoder with half of its KV in use", f.Rows[2].Delay, 1)
	f.Rows[2].Load, f.Rows[1].KVTokens, f.Rows[1].InFlight = 7, 0, 32
	fillDelay(f, &Ask{Shared: true}, Answer)
	near("a prefiller that could not take all prompts", f.Rows[0].Delay, 9)
	near("a decoder of unknown KV", f.Rows[1].Delay, .5)

	f = frame()
	for i := range f.Rows {
		f.Rows[i].TPOT = 0
	}
	f.Rows[2].HeldTokens = 1000
	fillDelay(f, &Ask{Shared: true}, Answer)
	near("full, before any answer", f.Rows[2].Delay, 4)

	f = frame()
	f.Rows[1].InFlight, f.Rows[1].Running, f.Rows[2].InFlight, f.Rows[2].MetricsAge = 5, 2, 3, -1
	fillDelay(f, &Ask{Shared: true}, Prefill)
	prefill := f.Header.Prefill(&f.Rows[0])
	near("a prompt where nobody writes", f.Rows[0].Delay, 0)
	near("a prompt where two answers are written", f.Rows[1].Delay, 2*prefill)
	near("a prompt where no metrics are known", f.Rows[2].Delay, 3*prefill)

	f.Header.Prefillers = 1
	fillDelay(f, &Ask{Shared: true}, Answer)
	near("a prefiller's row behind those of answers", f.Rows[2].Delay, 3*prefill)
}
