package world

import (
	"container/heap"
	"time"
)

// clock holds what is planned, the earliest first, and of one instant in the order of planning.
type clock struct {
	now   time.Duration
	plans plans
	n     uint64
}

type plan struct {
	at time.Duration
	n  uint64
	do func()
}

type plans []plan

func (p plans) Len() int           { return len(p) }
func (p plans) Less(i, j int) bool { return p[i].at < p[j].at || p[i].at == p[j].at && p[i].n < p[j].n }
func (p plans) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *plans) Push(x any)        { *p = append(*p, x.(plan)) }
func (p *plans) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = plan{}
	*p = old[:len(old)-1]
	return last
}

// at plans a call for an instant, now at the earliest.
func (c *clock) at(at time.Duration, do func()) {
	c.n++
	heap.Push(&c.plans, plan{at: max(at, c.now), n: c.n, do: do})
}

// next returns when the earliest plan is due; false if there is none.
func (c *clock) next() (time.Duration, bool) {
	if len(c.plans) == 0 {
		return 0, false
	}
	return c.plans[0].at, true
}

// step lets the earliest plan happen.
func (c *clock) step() {
	p := heap.Pop(&c.plans).(plan)
	c.now = p.at
	p.do()
}
