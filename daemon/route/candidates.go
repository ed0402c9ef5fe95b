package route

import "github.com/warmpath/warmpath/daemon/jsonline"

// AppendCandidates appends the candidates as a field of that name, or with none as the list alone: what encoding/json
// makes of them, but for numbers rounded to a millionth.
func (r *Record) AppendCandidates(l *jsonline.Line, name string) {
	l.OpenList(name)
	for i := range r.Candidates {
		c := &r.Candidates[i]
		l.Open("")
		l.Text("worker", c.Worker)
		l.Text("state", c.State)
		if c.Skipped != "" {
			l.Text("skipped", c.Skipped)
		}
		l.Int("gpu_blocks", int64(c.GPU))
		l.Int("l1_blocks", int64(c.L1))
		l.Int("l2_blocks", int64(c.L2))
		l.Int("in_flight", int64(c.InFlight))
		l.Number("wait", c.Wait)
		l.Number("prefill", c.Prefill)
		l.Number("eviction", c.Eviction)
		l.Number("tilt", c.Tilt)
		l.Number("cost", c.Cost)
		l.Number("free_gpu_tokens", float64(c.FreeGPU))
		l.Number("slowness", c.Slowness)
		l.Number("load", c.Load)
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
