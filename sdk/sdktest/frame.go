package sdktest

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Frame is one request and the workers it may go to, as the host would write them.
type Frame struct {
	Header abi.Header
	Rows   []abi.Row
}

// NewFrame returns a request of 1,000 tokens in blocks of 16 for n healthy, idle workers with empty caches.
func NewFrame(n int) *Frame {
	f := &Frame{Rows: make([]abi.Row, n)}
	f.Header = abi.Header{
		Version: abi.Version, HeaderBytes: abi.HeaderSize, RowBytes: abi.RowSize, Rows: uint32(n),
		Now: 1_700_000_000e9, PromptTokens: 1000, PromptBlocks: 62, BlockTokens: 16, Bound: -1, BestRow: -1,
		Lambda: .5, C1: abi.PrefillSeconds, C2: abi.ContextSeconds,
	}
	for i := range f.Rows {
		f.Rows[i] = abi.Row{Worker: uint32(i), Weight: 1, Slow: 1, FreeGPU: 500_000, Key: key(i)}
	}
	return f
}

// key is a stable well-mixed number for worker i: an odd multiplier from the golden ratio.
func key(i int) uint64 { return (uint64(i) + 1) * 0x9e3779b97f4a7c15 }

// Prompt makes the request one of that many tokens.
func (f *Frame) Prompt(tokens int) *Frame {
	f.Header.PromptTokens = uint32(tokens)
	f.Header.PromptBlocks = uint32(float32(tokens) / f.Header.BlockTokens)
	return f
}

// Hold says that worker row has that many leading tokens of the prompt on its GPU, in whole blocks.
func (f *Frame) Hold(row, tokens int) *Frame {
	blocks := uint32(float32(tokens) / f.Header.BlockTokens)
	f.Rows[row].GPU, f.Rows[row].Predicted = blocks, blocks
	if blocks > f.Header.BestMatch {
		f.Header.BestMatch, f.Header.BestRow = blocks, int32(row)
	}
	return f
}

// Result is what a strategy answered.
type Result struct {
	Row    int   // the chosen worker, or abi.Decline or abi.Reject
	Order  []int // the alternatives, best first
	Reason sdk.Reason
	Bind   bool
}

// Run asks s and fails the test if the answer breaks the contract.
func (f *Frame) Run(t testing.TB, s sdk.Strategy) Result {
	t.Helper()
	f.Header.Rows = uint32(len(f.Rows))
	before := append([]abi.Row(nil), f.Rows...)
	order := make([]uint32, len(f.Rows))
	d := sdk.PickNative(s, &f.Header, f.Rows, order)
	if !bytes.Equal(raw(before), raw(f.Rows)) {
		t.Fatal("the strategy changed a row; rows are the host's")
	}
	res := Result{Row: d.Row(), Reason: d.Reason(), Bind: d.Binds()}
	n := len(f.Rows)
	if res.Row >= n || res.Row < int(abi.Reject) {
		t.Fatalf("row %d of %d was chosen; choose one that exists, sdk.Decline or sdk.Reject", res.Row, n)
	}
	named := map[int]bool{res.Row: true}
	for _, o := range order[:f.Header.OrderLen] {
		i := int(o)
		if i < 0 || i >= n || named[i] {
			t.Fatalf("alternative %d after %v of %d rows: out of range, or named before", i, named, n)
		}
		named[i] = true
		res.Order = append(res.Order, i)
	}
	return res
}

// raw is the rows as bytes, in which NaN equals itself.
func raw(rows []abi.Row) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*abi.RowSize)
}

// Configure gives s options as the host does: once, before the first request.
func Configure(s sdk.Strategy, values map[string]string) error {
	return sdk.Configure(s, encode(values))
}
