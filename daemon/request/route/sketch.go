package route

import (
	"math"
	"slices"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Sketch is what a choice was made of, in the form that costs least to keep: the rows as they are. Explain makes the
// words and the terms of the cost when somebody asks (BenchmarkSketch). It holds no text of the request. Its zero value
// is ready, and the next Take uses its memory again.
type Sketch struct {
	header abi.Header
	cut    bool        // rows were left out
	scale  score.Scale // of all rows, if cut
	rows   []abi.Row   // at most maxCandidates
	ids    []string    // of the rows
	order  []int32     // of the rows
	beyond int         // of the order, for which there was no room
	absent []Candidate

	best   best           // memory
	others []worker.Stats // memory: on the stack it would be 2 KB that every request clears
}

// best is the rows that come first in the order.
type best struct {
	rows  []abi.Row
	ids   []string
	order []int32
}

// Take copies what the choice was made of. Call it before the first worker is tried. The sketch is good until Release;
// a caller that keeps it longer writes it with Code before that.
func (s *Sketch) Take(c *Choice) {
	f := &c.fleet.frame
	s.header = f.Header
	s.absent = s.absent[:0]
	s.cut = len(f.Rows) > maxCandidates
	if !s.cut {
		s.rows = f.Rows
		s.ids = f.WorkerIDs
		s.order = c.order.rows
	} else {
		s.takeBest(f, c.order.rows)
	}
	s.beyond = len(c.order.rows) - len(s.order)
	s.others = c.pool.Workers.Others(f.Rows, c.at, s.others[:0], maxCandidates-len(s.rows))
	for i := range s.others {
		s.absent = append(s.absent, absent(&s.others[i], c.prompt.Model, c.need()))
	}
}

// takeBest takes the rows that come first in the order.
func (s *Sketch) takeBest(f *host.Frame, order []int32) {
	s.scale = score.NewScale(&s.header, f.Rows)
	s.header.Bound, s.header.BestRow = -1, -1
	b := &s.best
	b.rows = b.rows[:0]
	b.ids = b.ids[:0]
	b.order = b.order[:0]
	for n, i := range order[:min(len(order), maxCandidates)] {
		b.rows = append(b.rows, f.Rows[i])
		b.ids = append(b.ids, f.WorkerIDs[i])
		b.order = append(b.order, int32(n))
		if i == f.Header.Bound {
			s.header.Bound = int32(n)
		}
		if i == f.Header.BestRow {
			s.header.BestRow = int32(n)
		}
	}
	s.rows = b.rows
	s.ids = b.ids
	s.order = b.order
}

// First returns the first worker of the order, and the blocks it was believed to hold; "" if there is none.
func (s *Sketch) First() (id string, held uint32) {
	if len(s.order) == 0 {
		return "", 0
	}
	i := s.order[0]
	return s.ids[i], s.rows[i].Matched()
}

// Known reports whether a choice was taken.
func (s *Sketch) Known() bool { return len(s.rows)+len(s.absent) > 0 }

// Explain writes candidates and frame into r's own memory. Costs that are no numbers become the largest number, as JSON
// has neither NaN nor infinity.
func (s *Sketch) Explain(r *Record) {
	r.Candidates = make([]Candidate, 0, len(s.rows)+len(s.absent))
	scale := s.scale
	if !s.cut {
		scale = score.NewScale(&s.header, s.rows)
	}
	for _, i := range s.order {
		r.Candidates = append(r.Candidates, candidate(&s.rows[i], s.ids[i], &scale))
	}
	for i := range s.rows {
		if !slices.Contains(s.order, int32(i)) {
			c := candidate(&s.rows[i], s.ids[i], &scale)
			c.Skipped = sessionStays
			r.Candidates = append(r.Candidates, c)
		}
	}
	for i := range r.Candidates {
		r.Candidates[i].finite()
	}
	r.Candidates = append(r.Candidates, s.absent...)
	r.More = s.beyond
	if len(s.rows) > 0 {
		f := host.Frame{Header: s.header, Rows: s.rows}
		r.Frame = f.AppendTo(make([]byte, 0, abi.HeaderSize+len(s.rows)*abi.RowSize))
	}
}

// Code writes the sketch into few bytes, or reads it from them. Texts that are read are parts of those of c.
func (s *Sketch) Code(c *packed.Coder) {
	rows, ids, order := c.Len(len(s.rows)), c.Len(len(s.ids)), c.Len(len(s.order))
	others := c.Len(len(s.absent))
	if c.Reading() {
		*s = Sketch{rows: make([]abi.Row, rows), ids: make([]string, ids), order: make([]int32, order),
			absent: make([]Candidate, others)}
	}
	c.Bools(&s.cut)
	packed.Int(c, &s.beyond)
	if s.cut {
		sums := s.scale.Sums()
		for i := range sums {
			c.Float(&sums[i])
		}
		s.scale = score.ScaleOf(&s.header, sums)
	}
	if rows > 0 { // else nothing was decided on
		c.Words(unsafe.Slice((*uint64)(unsafe.Pointer(&s.header)), abi.HeaderSize/8), nil)
	}
	var before []uint64
	for i := range s.rows {
		row := unsafe.Slice((*uint64)(unsafe.Pointer(&s.rows[i])), abi.RowSize/8)
		c.Words(row, before)
		before = row
	}
	for i := range s.ids {
		c.Texts(&s.ids[i])
	}
	for i := range s.order {
		packed.Int(c, &s.order[i])
	}
	for i := range s.absent {
		s.absent[i].code(c)
	}
}

// code writes or reads what an absent worker's candidate has.
func (a *Candidate) code(c *packed.Coder) {
	c.Text(&a.Worker)
	c.Text(&a.State)
	c.Text(&a.Skipped)
	packed.Int(c, &a.InFlight)
	c.Float(&a.Wait)
	c.Float(&a.Slowness)
	c.Float(&a.Load)
	c.Bools(&a.SlowStart)
}

// Clear forgets the choice and keeps the memory.
func (s *Sketch) Clear() {
	clear(s.others) // its texts
	s.rows = nil
	s.ids = nil
	s.order = nil
	s.absent = s.absent[:0]
	s.beyond = 0
	s.cut = false
}

// finite replaces what is no number.
func (c *Candidate) finite() {
	for _, v := range []*float64{&c.Wait, &c.Prefill, &c.Eviction, &c.Tilt, &c.Cost, &c.Slowness, &c.Load} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = math.MaxFloat64
		}
	}
	if f := float64(c.FreeGPU); math.IsNaN(f) || math.IsInf(f, 0) {
		c.FreeGPU = math.MaxFloat32
	}
}
