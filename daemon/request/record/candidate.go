package record

import (
	"math"

	"github.com/warmpath/warmpath/daemon/transport/jsonline"
)

// Candidate is one worker as a decision saw it. Times are seconds; the terms of the cost are those of package score,
// whatever strategy chose.
type Candidate struct {
	Worker    string  `json:"worker"`
	State     string  `json:"state"`
	Skipped   string  `json:"skipped,omitempty"` // why it was not a candidate
	GPU       uint32  `json:"gpu_blocks"`
	L1        uint32  `json:"l1_blocks"`
	L2        uint32  `json:"l2_blocks"`
	InFlight  uint32  `json:"in_flight"`
	Wait      float64 `json:"wait"`
	Prefill   float64 `json:"prefill"`
	Eviction  float64 `json:"eviction"`
	Overflow  float64 `json:"overflow"`
	Adapter   float64 `json:"adapter"`
	Delay     float64 `json:"delay"`
	Tilt      float64 `json:"tilt"`
	Cost      float64 `json:"cost"`
	FreeGPU   float32 `json:"free_gpu_tokens"`
	Slowness  float64 `json:"slowness"`
	Load      float64 `json:"load"`
	SlowStart bool    `json:"slow_start,omitempty"`
	Live      bool    `json:"live,omitempty"` // the worker reported its blocks; else they are history
}

// Finite replaces NaN and infinities.
func (c *Candidate) Finite() {
	for _, v := range []*float64{&c.Wait, &c.Prefill, &c.Eviction, &c.Overflow, &c.Adapter, &c.Delay, &c.Tilt,
		&c.Cost, &c.Slowness, &c.Load} {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			*v = math.MaxFloat64
		}
	}
	if f := float64(c.FreeGPU); math.IsNaN(f) || math.IsInf(f, 0) {
		c.FreeGPU = math.MaxFloat32
	}
}

// write appends the candidate.
func (c *Candidate) write(l *jsonline.Line) {
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
	number(l, "adapter", c.Adapter)
	number(l, "delay", c.Delay)
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
