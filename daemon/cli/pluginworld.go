package cli

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Headers, callers and labels of the generated requests and workers. A strategy that finds none of these often ends
// before it looks at a worker, so that a check would show neither its cost nor its faults.
var (
	madeUpCallers = [...]string{"acme", "other", "batch"}
	madeUpValues  = [...]headerValue{"250", "gold", "1"} // of each header that the module may see
	madeUpModels  = [...]string{"base", "adapter"}
	madeUpLabels  = []string{"for=acme", "for=batch", "for=other", "region=a", "region=b", "tier=batch",
		"tier=interactive", "watts=300", "watts=700", "zone=a", "zone=b"}
)

// mostLabels is how many labels the rows of a frame can have.
const mostLabels = 64

// labelNames returns those of the made-up workers: what is asked for, each option as a label, and the usual ones.
func (w *pluginWish) labelNames() []string {
	all := slices.Clone(w.labels)
	for _, k := range slices.Sorted(maps.Keys(w.options)) {
		all = append(all, k+"="+w.options[k])
	}
	all = append(all, madeUpLabels...)
	return all[:min(len(all), mostLabels)]
}

// headerValue is the value of all headers of a request.
type headerValue string

// Header implements [host.HeaderSource].
func (v headerValue) Header(string) (string, bool) { return string(v), true }

// madeUp generates a frame with the given number of workers, all different. Each label is at every third of them.
func madeUp(workers int, labels []string) *host.Frame {
	f := &host.Frame{}
	f.Reset()
	f.Header.PromptTokens = 8192
	f.Header.PromptBlocks = 256
	f.Header.BlockTokens = 32
	f.Header.C1 = abi.PrefillSeconds
	f.Header.C2 = abi.ContextSeconds
	f.Header.Now = time.Now().UnixNano()
	f.Labels, f.Header.Labels, f.Header.LabelsEpoch = labels, uint32(len(labels)), 1
	for i := range workers {
		f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Key: uint64(i+1) * 0x9e3779b97f4a7c15, Slow: 1, Weight: 1,
			InFlight: uint32(i % 7), GPU: uint32(i % 256), Predicted: uint32(i % 256),
			Labels: 0x9249249249249249 << (i % 3) & (1<<len(labels) - 1)})
		f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint("w", i+1))
	}
	return f
}

// ask gives the request its caller, headers and model: those of number n. One in ten has neither caller nor headers.
// Every other one names an adapter, which runs at some workers, waits at others, and finds others full.
func ask(f *host.Frame, n int) {
	model := n % len(madeUpModels)
	f.Model, f.Header.Model = madeUpModels[model], hashOf(madeUpModels[model])
	states := [...]uint32{abi.RowAdapter, 500 << abi.RowLoadShift, abi.RowAdapterWaiting | 300<<abi.RowLoadShift,
		abi.RowAdaptersFull | 900<<abi.RowLoadShift}
	for i := range f.Rows {
		f.Rows[i].State &= abi.RowAdapter - 1 | abi.RowPrefill | abi.RowDecode
		f.Rows[i].State |= states[i%len(states)] * uint32(model)
	}
	f.Caller, f.Header.Caller, f.Headers = "", 0, nil
	if n%10 == 9 {
		return
	}
	f.Caller = madeUpCallers[n%len(madeUpCallers)]
	f.Header.Caller = hashOf(f.Caller)
	f.Headers = madeUpValues[n/len(madeUpCallers)%len(madeUpValues)]
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
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
	case got.Reject != nil && left.TextOutside:
		return "the text of its rejection leaves its memory, and the client gets the host's words; give the text's address " +
			"and length"
	case got.Flags&^(abi.FlagBind|abi.FlagOnly) != 0:
		return fmt.Sprintf("it sets the flags %#x, which mean nothing; give those of the contract, or 0",
			got.Flags&^(abi.FlagBind|abi.FlagOnly))
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
