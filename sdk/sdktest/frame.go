package sdktest

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
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
		Configured: uint32(n), Up: uint32(n),
		Now: 1_700_000_000e9, PromptTokens: 1000, PromptBlocks: 62, BlockTokens: 16, Bound: -1, BestRow: -1, Last: -1,
		ParentRow: -1, Lambda: .5, C1: abi.PrefillSeconds, C2: abi.ContextSeconds,
	}
	for i := range f.Rows {
		f.Rows[i] = abi.Row{Worker: uint32(i), Weight: 1, Slow: 1, FreeGPU: 500_000, KVTokens: 500_000, Key: key(i)}
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

// Hold makes worker row hold that many leading tokens of the prompt on its GPU, in whole blocks.
func (f *Frame) Hold(row, tokens int) *Frame {
	blocks := uint32(float32(tokens) / f.Header.BlockTokens)
	f.Rows[row].GPU, f.Rows[row].Predicted = blocks, blocks
	if blocks > f.Header.BestMatch {
		f.Header.BestMatch, f.Header.BestRow = blocks, int32(row)
	}
	return f
}

// Label gives worker row a label, as tier=batch. The test's Host is to have the same list of labels, so that names are
// found.
func (f *Frame) Label(h *Host, row int, label string) *Frame {
	bit := slices.Index(h.Labels, label)
	if bit < 0 {
		bit = len(h.Labels)
		h.Labels = append(h.Labels, label)
	}
	f.Rows[row].Labels |= 1 << bit
	f.Header.Labels = uint32(len(h.Labels))
	f.Header.LabelsEpoch++
	return f
}

// Prefillers makes the last n workers prefillers, as the host shows them to a strategy that asks for [sdk.WantPair].
func (f *Frame) Prefillers(n int) *Frame {
	f.Header.Flags |= abi.HeaderAnswer
	f.Header.Prefillers = uint32(n)
	for i := len(f.Rows) - n; i < len(f.Rows); i++ {
		f.Rows[i].State |= abi.RowPrefill
	}
	return f
}

// Result is what a strategy answered.
type Result struct {
	Row    int   // the chosen worker, or abi.Decline, abi.Reject or abi.Hold
	Order  []int // the alternatives, best first
	Reason sdk.Reason
	Bind   bool

	// Of a rejection by sdk.Request.Reject; 0 and "" without one.
	Status     int
	Text       string
	RetryAfter int // seconds

	Hold float64 // seconds, of sdk.Request.Hold
	Pair int     // row that computes the prompt, by sdk.Request.Pair: Row itself = no other one; -1 = none named
}

// Run asks s and fails the test if the answer breaks the contract.
func (f *Frame) Run(t testing.TB, s sdk.Strategy) Result {
	t.Helper()
	r, d := f.ask(t, s.Route)
	order := r.Order()
	res := Result{Row: d.Row(), Reason: d.Reason(), Bind: d.Binds()}
	n := len(f.Rows) - int(f.Header.Prefillers)
	if res.Row >= n || res.Row < int(abi.Hold) {
		t.Fatalf("row %d of %d was chosen; choose one that exists, and no prefiller, sdk.Decline, sdk.Reject or r.Hold",
			res.Row, n)
	}
	res = rejection(t, r, res)
	res.Pair = f.pairOf(t, res.Row)
	if res.Row == int(abi.Hold) {
		res.Hold = float64(f.Header.HoldMillis) / 1000
	}
	named := map[int]bool{res.Row: true}
	for _, o := range order {
		i := int(o)
		if i < 0 || i >= n || named[i] {
			t.Fatalf("alternative %d after %v of %d rows: out of range, a prefiller, or named before", i, named, n)
		}
		named[i] = true
		res.Order = append(res.Order, i)
	}
	return res
}

// ask calls the strategy, and fails the test if it changes a row.
func (f *Frame) ask(t testing.TB, call func(*sdk.Request, []sdk.Worker) sdk.Decision) (*sdk.Request, sdk.Decision) {
	t.Helper()
	f.Header.Rows = uint32(len(f.Rows))
	if host, ok := imports.Current.(fake); ok && host.h.Own != nil {
		for i := range f.Rows {
			f.Rows[i].Own = host.h.Own[f.Rows[i].Key]
		}
	}
	before := append([]abi.Row(nil), f.Rows...)
	f.Header.OrderLen, f.Header.HoldMillis, f.Header.PairRow = 0, 0, -1
	r := sdk.NewRequest(&f.Header, make([]uint32, len(f.Rows)))
	d := call(r, f.Rows)
	if !bytes.Equal(raw(before), raw(f.Rows)) {
		t.Fatal("the strategy changed a row; rows are the host's")
	}
	return r, d
}

// Filter asks s which rows the request may use, and fails the test if the answer breaks the contract. Order has these
// rows, all of them if s has no opinion, and Row their number, [abi.Decline] or [abi.Reject].
func (f *Frame) Filter(t testing.TB, s sdk.Filterer) Result {
	t.Helper()
	r, d := f.ask(t, s.Filter)
	res := rejection(t, r, Result{Row: d.Row(), Reason: d.Reason(), Pair: -1})
	kept := r.Order()
	if res.Row < int(abi.Reject) || res.Row >= 0 && res.Row != len(kept) {
		t.Fatalf("%d rows are kept, and %d stand in the order area; return r.Keep(...), sdk.Decline or r.Reject(...)",
			res.Row, len(kept))
	}
	for i := range f.Rows {
		if res.Row == int(abi.Decline) || slices.Contains(kept, uint32(i)) {
			res.Order = append(res.Order, i)
		}
	}
	return res
}

// rejection fills what the client gets of a request that is turned away.
func rejection(t testing.TB, r *sdk.Request, res Result) Result {
	t.Helper()
	if res.Row == int(abi.Reject) {
		res.Status, res.Text, res.RetryAfter = r.Rejected()
		if res.Status != 0 && (res.Status < 400 || res.Status > 599) {
			t.Fatalf("rejected with status %d; want 400 to 599", res.Status)
		}
	}
	return res
}

// Classify asks s how urgent the request is, as the host does before it waits: without workers. It fails the test if
// the answer is out of bounds.
func (f *Frame) Classify(t testing.TB, s sdk.Classifier) (class int, weight float64) {
	t.Helper()
	h := f.Header
	h.Rows = 0
	class, weight = s.Classify(sdk.NewRequest(&h, nil))
	if class < -100 || class > 100 || weight != 0 && !(weight >= .1 && weight <= 100) {
		t.Fatalf("class %d with a share of %v; want -100 to 100, and 0 or .1 to 100", class, weight)
	}
	return class, weight
}

// raw is the rows as bytes, in which NaN equals itself.
func raw(rows []abi.Row) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*abi.RowSize)
}

// Configure gives s options as the host does: once, before the first request.
func Configure(s sdk.Strategy, values map[string]string) error {
	return sdk.Configure(s, encode(values))
}

// pairOf returns the row that was named for the prompt with the chosen one, and fails the test if it cannot be.
func (f *Frame) pairOf(t testing.TB, row int) int {
	t.Helper()
	p := int(f.Header.PairRow)
	switch {
	case row < 0:
		return -1
	case p == -1, p == row, p >= 0 && p < len(f.Rows) && f.Rows[p].Prefills():
		return p
	}
	t.Fatalf("row %d of %d was named for the prompt; name one that there is, and that Prefills", p, len(f.Rows))
	return -1
}
