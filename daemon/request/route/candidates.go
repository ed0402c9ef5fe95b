package route

import (
	"sync"

	"github.com/warmpath/warmpath/daemon/transport/jsonline"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/sdk/abi"
)

// CandidatesJSON returns the candidates as a JSON list. It differs from encoding/json's in its numbers: it rounds them
// to a millionth and leaves zeros out, which makes a third of the bytes. The list is written once for all callers and
// stands until the next Explain.
func (r *Record) CandidatesJSON() []byte {
	if len(r.listed) == 0 {
		r.list(&r.listed)
	}
	return r.listed
}

// list appends the candidates.
func (r *Record) list(l *jsonline.Line) {
	l.OpenList("")
	for i := range r.Candidates {
		c := &r.Candidates[i]
		l.Open("")
		l.Text("worker", c.Worker)
		l.Text("state", c.State)
		if c.Skipped != "" {
			l.Text("skipped", c.Skipped)
		}
		count(l, "gpu_blocks", c.GPU)
		count(l, "l1_blocks", c.L1)
		count(l, "l2_blocks", c.L2)
		count(l, "in_flight", c.InFlight)
		number(l, "wait", c.Wait)
		number(l, "prefill", c.Prefill)
		number(l, "eviction", c.Eviction)
		number(l, "overflow", c.Overflow)
		number(l, "tilt", c.Tilt)
		number(l, "cost", c.Cost)
		number(l, "free_gpu_tokens", float64(c.FreeGPU))
		number(l, "slowness", c.Slowness)
		number(l, "load", c.Load)
		if c.SlowStart {
			l.Bool("slow_start", true)
		}
		if c.Live {
			l.Bool("live", true)
		}
		l.Close()
	}
	l.CloseList()
}

// count appends a count, unless it is 0.
func count(l *jsonline.Line, name string, n uint32) {
	if n != 0 {
		l.Int(name, int64(n))
	}
}

// number appends a number, unless it is 0.
func number(l *jsonline.Line, name string, v float64) {
	if v != 0 {
		l.Number(name, v)
	}
}

// AppendFrame appends the frame as a field of that name: in base64, as packed.ReadTable reads it.
func (r *Record) AppendFrame(l *jsonline.Line, name string) {
	text := frames.Get().(*[]byte)
	*text = packed.AppendTable((*text)[:0], r.Frame, abi.HeaderSize, abi.RowSize)
	l.Base64(name, *text)
	frames.Put(text)
}

// frames are memory for packed frames, of 64 rows at most.
var frames = sync.Pool{New: func() any { return new([]byte) }}
