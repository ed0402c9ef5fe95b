package route

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Sketch is what a choice was made of, in the form that costs least to keep: the rows as they are, as copies. Explain
// makes the words and the terms of the cost when somebody asks (BenchmarkSketch). It holds no text of the request. Its
// zero value is ready, and the next Take uses its memory again.
type Sketch struct {
	header abi.Header
	cut    bool       // rows were left out
	sums   [7]float64 // of the scale of all rows, if cut
	rows   []abi.Row  // at most maxCandidates
	ids    []string   // of the rows
	order  []int32    // of the rows
	beyond int        // of the order, for which there was no room
	absent []record.Candidate
}

// others is memory for the workers without a row. It is no part of a sketch, which is kept for long.
var others = sync.Pool{New: func() any { return new([]worker.Stats) }}

// Take copies what the choice was made of. Call it before the first worker is tried.
func (s *Sketch) Take(c *Choice) {
	f := &c.fleet.frame
	s.Clear()
	s.header = f.Header
	s.cut = len(f.Rows) > maxCandidates
	if s.cut {
		s.takeBest(f, c.order.rows)
	} else {
		s.rows = append(s.rows, f.Rows...)
		s.ids = append(s.ids, f.WorkerIDs...)
		s.order = append(s.order, c.order.rows...)
	}
	s.beyond = len(c.order.rows) - len(s.order)
	s.takeAbsent(c)
}

// takeBest takes the rows that come first in the order.
func (s *Sketch) takeBest(f *host.Frame, order []int32) {
	scale := score.NewScale(&f.Header, f.Rows)
	s.sums = scale.Sums()
	s.header.Prefillers = 0 // they come behind the order
	order = order[:min(len(order), maxCandidates)]
	for _, row := range []*int32{&s.header.Bound, &s.header.BestRow, &s.header.Last, &s.header.ParentRow} {
		*row = int32(slices.Index(order, *row))
	}
	for n, i := range order {
		s.rows = append(s.rows, f.Rows[i])
		s.ids = append(s.ids, f.WorkerIDs[i])
		s.order = append(s.order, int32(n))
	}
}

// takeAbsent takes the workers that have no row, as far as there is room.
func (s *Sketch) takeAbsent(c *Choice) {
	room := maxCandidates - len(s.rows)
	memory := others.Get().(*[]worker.Stats)
	list := c.others((*memory)[:0], room)
	for i := range list {
		s.absent = append(s.absent, absent(&list[i], c.prompt.Model, c.need(), c.only))
	}
	clear(list) // its texts
	*memory = list
	others.Put(memory)
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
func (s *Sketch) Explain(r *record.Record) {
	r.Candidates = make([]record.Candidate, 0, len(s.rows)+len(s.absent))
	choices := len(s.rows) - int(s.header.Prefillers)
	scale := score.ScaleOf(&s.header, s.sums)
	if !s.cut {
		scale = score.NewScale(&s.header, s.rows)
	}
	for _, i := range s.order {
		r.Candidates = append(r.Candidates, candidate(&s.rows[i], s.ids[i], &scale))
	}
	for i := range s.rows {
		if !slices.Contains(s.order, int32(i)) {
			c := candidate(&s.rows[i], s.ids[i], &scale)
			c.Skipped = unordered(i, choices)
			r.Candidates = append(r.Candidates, c)
		}
	}
	for i := range r.Candidates {
		r.Candidates[i].Finite()
	}
	r.Candidates = append(r.Candidates, s.absent...)
	r.More, r.LeftOut = int32(s.beyond), int32(s.header.LeftOut)
	if len(s.rows) > 0 {
		f := host.Frame{Header: s.header, Rows: s.rows}
		r.Frame = f.AppendTo(make([]byte, 0, abi.HeaderSize+len(s.rows)*abi.RowSize))
	}
}

// Clear forgets the choice and keeps the memory.
func (s *Sketch) Clear() {
	*s = Sketch{rows: s.rows[:0], ids: s.ids[:0], order: s.order[:0], absent: s.absent[:0]}
}

// Size returns the bytes of memory that the sketch holds beside itself.
func (s *Sketch) Size() int {
	return cap(s.rows)*abi.RowSize + cap(s.ids)*int(unsafe.Sizeof("")) + cap(s.order)*int(unsafe.Sizeof(int32(0))) +
		cap(s.absent)*int(unsafe.Sizeof(record.Candidate{}))
}
