package cli

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Headers, callers and labels of the generated requests and workers. A strategy that finds none of these often ends
// before it looks at a worker, so that a check would show neither its cost nor its faults.
var (
	madeUpCallers = [...]string{"acme", "other", "batch"}
	madeUpValues  = [...]headerValue{"250", "gold", "1"} // of each header that the module may see
	madeUpLabels  = []string{"for=acme", "for=batch", "for=other", "tier=batch", "tier=interactive"}
)

// headerValue is the value of all headers of a request.
type headerValue string

// Header implements [host.HeaderSource].
func (v headerValue) Header(string) (string, bool) { return string(v), true }

// madeUp generates a frame with the given number of workers, all different.
func madeUp(workers int) *host.Frame {
	f := &host.Frame{}
	f.Reset()
	f.Header.PromptTokens = 8192
	f.Header.PromptBlocks = 256
	f.Header.BlockTokens = 32
	f.Header.C1 = abi.PrefillSeconds
	f.Header.C2 = abi.ContextSeconds
	f.Labels, f.Header.Labels, f.Header.LabelsEpoch = madeUpLabels, uint32(len(madeUpLabels)), 1
	for i := range workers {
		f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Key: uint64(i+1) * 0x9e3779b97f4a7c15, Slow: 1, Weight: 1,
			InFlight: uint32(i % 7), GPU: uint32(i % 256), Predicted: uint32(i % 256),
			Labels: 1<<(i%len(madeUpCallers)) | 1<<(len(madeUpCallers)+i%2)})
		f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint("w", i+1))
	}
	return f
}

// ask gives the request its caller and headers: those of number n. One in ten has neither.
func ask(f *host.Frame, n int) {
	f.Caller, f.Header.Caller, f.Headers = "", 0, nil
	if n%10 == 9 {
		return
	}
	f.Caller = madeUpCallers[n%len(madeUpCallers)]
	h := fnv.New64a()
	h.Write([]byte(f.Caller))
	f.Header.Caller = h.Sum64()
	f.Headers = madeUpValues[n/len(madeUpCallers)%len(madeUpValues)]
}

// setRoles makes the last n rows those of prefillers, and the others those that answer, of which every third computes
// no prompts for others. n of all rows asks for the prompt alone.
func setRoles(f *host.Frame, n int) {
	choices := len(f.Rows) - n
	f.Header.Flags, f.Header.Prefillers = abi.HeaderAnswer, uint32(n)
	if choices == 0 {
		f.Header.Flags, f.Header.Prefillers = abi.HeaderPrefill, 0
	}
	for i := range f.Rows {
		w := &f.Rows[i]
		w.State &^= abi.RowPrefill | abi.RowDecode
		switch {
		case i >= choices:
			w.State |= abi.RowPrefill
		case i%3 == 2:
			w.State |= abi.RowDecode
		}
	}
}

// faultOf describes an error in the module's answer to the pick of f; "" = there is none.
func faultOf(f *host.Frame, got host.Result, left *host.Leftover) string {
	n := uint32(len(f.Rows))
	switch {
	case left.RowsChanged:
		return "it changes its rows, which the host does not read back; copy what you work on"
	case got.Reject != nil && left.Status != 0 && (left.Status < 400 || left.Status > 599):
		return fmt.Sprintf("it rejects with status %d, for which the client gets %d; give one of 400 to 599", left.Status,
			got.Reject.Status)
	case got.Reject != nil || got.Fallback != "":
		return ""
	case left.Alternatives > n:
		return fmt.Sprintf("it names %d alternatives of %d workers; the host reads no more than there are workers",
			left.Alternatives, n)
	}
	if i := left.Pair; i != -1 && got.Pair == 0 {
		if i < 0 || i >= int32(n) {
			return fmt.Sprintf("it names row %d of %d for the prompt; name one that there is", i, n)
		}
		return fmt.Sprintf("it names row %d for the prompt, which computes none for others; see that it Prefills", i)
	}
	choices := n - f.Header.Prefillers
	for i, k := range left.Order {
		if k >= choices && k < n {
			return fmt.Sprintf("its alternative %d is row %d, a prefiller, which answers nobody; name it by Pair", i+1, k)
		}
		if k >= n {
			return fmt.Sprintf("its alternative %d is row %d of %d; name rows that there are", i+1, k, n)
		}
		if k == uint32(got.Row) || slices.Contains(left.Order[:i], k) {
			return fmt.Sprintf("its alternative %d is row %d once more; name each worker once", i+1, k)
		}
	}
	return ""
}
