package queue

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model is a queue that looks at all requests for each answer. It has the rules of doc.go in plain loops.
type model struct {
	conf    Config
	flows   []*modelFlow       // of each class in the order of their turns, in no order across classes
	blocked map[uint64]bool    // by lane
	spent   map[uint64]float64 // by lane
	last    float64            // of the lane that was served last, before that
	inOrder int
}

type modelFlow struct {
	key      flowKey
	waiting  []*Request
	weight   float64
	deficit  float64
	credited bool
	served   time.Time
}

// share is what the flow holds of the bounds with further requests and bytes, for a weight.
func (m *model) share(f *modelFlow, requests int, bytes int64, weight float64) float64 {
	if f != nil {
		for _, r := range f.waiting {
			requests, bytes = requests+1, bytes+r.Bytes
		}
	}
	return max(float64(requests)/float64(m.conf.MaxRequests), float64(bytes)/float64(m.conf.MaxBytes)) / weight
}

func (m *model) all() (all []*Request) {
	for _, f := range m.flows {
		all = append(all, f.waiting...)
	}
	return all
}

func (m *model) bytes() (n int64) {
	for _, r := range m.all() {
		n += r.Bytes
	}
	return n
}

// find returns the flow of a key; nil if none of it waits.
func (m *model) find(key flowKey) *modelFlow {
	for _, f := range m.flows {
		if f.key == key {
			return f
		}
	}
	return nil
}

func keyOf(r *Request) flowKey { return flowKey{lane: r.Lane, class: r.Class, name: r.Flow} }

// mayDisplace reports whether the requests are what a newcomer displaces: the last of one of the worst flows, no more
// than needed, and none that the newcomer may not displace. turn has the turn.
func (m *model) mayDisplace(r, turn *Request, out []*Request) error {
	w := m.find(keyOf(out[0]))
	own := m.find(keyOf(r))
	if w == own || !slices.Contains(m.worst(), w) {
		return fmt.Errorf("it displaced of flow %v, which is none of the worst", w.key)
	}
	rest := slices.DeleteFunc(slices.Clone(w.waiting), func(x *Request) bool { return x == turn })
	if len(rest) < len(out) {
		return fmt.Errorf("it displaced %d of %d", len(out), len(rest))
	}
	shrunk := &modelFlow{waiting: slices.Clone(w.waiting)}
	requests, bytes := len(m.all())+1, m.bytes()+r.Bytes
	for i, d := range out {
		if d != rest[len(rest)-1-i] {
			return fmt.Errorf("it displaced not the last of flow %v", w.key)
		}
		if requests <= m.conf.MaxRequests && bytes <= m.conf.MaxBytes {
			return fmt.Errorf("it displaced more than it needed")
		}
		if w.key.class == r.Class && m.share(shrunk, 0, 0, w.weight) <= m.share(own, 1, r.Bytes, r.Weight) {
			return fmt.Errorf("it displaced of a flow that holds no more than its own")
		}
		requests, bytes = requests-1, bytes-d.Bytes
		shrunk.waiting = slices.DeleteFunc(shrunk.waiting, func(x *Request) bool { return x == d })
	}
	if requests > m.conf.MaxRequests || bytes > m.conf.MaxBytes {
		return fmt.Errorf("it displaced less than it needed")
	}
	return nil
}

// mustRefuse reports whether a newcomer finds no room, by one of the worst flows at least.
func (m *model) mustRefuse(r, turn *Request) bool {
	if len(m.all()) < m.conf.MaxRequests && m.bytes()+r.Bytes <= m.conf.MaxBytes {
		return false
	}
	for _, w := range m.worst() {
		rest := slices.DeleteFunc(slices.Clone(w.waiting), func(x *Request) bool { return x == turn })
		fits := false
		for n := 1; n <= len(rest) && !fits && w.key.class <= r.Class; n++ {
			out := slices.Clone(rest[len(rest)-n:])
			slices.Reverse(out)
			fits = m.mayDisplace(r, turn, out) == nil
		}
		if !fits {
			return true
		}
	}
	return len(m.flows) == 0
}

// worst returns the flows that hold the most of the lowest class.
func (m *model) worst() (worst []*modelFlow) {
	rank := func(a, b *modelFlow) int {
		return cmp.Or(cmp.Compare(a.key.class, b.key.class),
			cmp.Compare(m.share(b, 0, 0, b.weight), m.share(a, 0, 0, a.weight)))
	}
	for _, f := range m.flows {
		switch {
		case len(worst) == 0 || rank(f, worst[0]) < 0:
			worst = []*modelFlow{f}
		case rank(f, worst[0]) == 0:
			worst = append(worst, f)
		}
	}
	return worst
}

func (m *model) enter(r *Request, at time.Time) {
	f := m.find(keyOf(r))
	if f == nil {
		f = &modelFlow{key: keyOf(r), served: at, weight: r.Weight}
		if !slices.ContainsFunc(m.flows, func(o *modelFlow) bool { return o.key.lane == r.Lane }) {
			m.blocked[r.Lane], m.spent[r.Lane] = false, m.last
		}
		m.flows = append(m.flows, f)
	}
	f.waiting = append(f.waiting, r)
	slices.SortStableFunc(f.waiting, func(a, b *Request) int {
		if m.conf.ByDeadline {
			return a.due().Compare(b.due())
		}
		return a.Entered.Compare(b.Entered)
	})
}

func (m *model) remove(r *Request) {
	f := m.find(keyOf(r))
	f.waiting = slices.DeleteFunc(f.waiting, func(x *Request) bool { return x == r })
	if len(f.waiting) == 0 {
		m.flows = slices.DeleteFunc(m.flows, func(x *modelFlow) bool { return x == f })
	}
}

// next returns whose turn it is, and whether before a higher class.
func (m *model) next(at time.Time) (r *Request, early bool) {
	classes := map[flowKey][]*modelFlow{} // of each lane
	var top, starved *flowKey
	for _, f := range m.flows {
		if !m.blocked[f.key.lane] {
			key := flowKey{lane: f.key.lane, class: f.key.class}
			classes[key] = append(classes[key], f)
		}
	}
	oldest := func(k flowKey) time.Time {
		return slices.MinFunc(classes[k], func(a, b *modelFlow) int { return a.served.Compare(b.served) }).served
	}
	for k := range classes {
		if top == nil ||
			cmp.Or(cmp.Compare(top.class, k.class), cmp.Compare(m.spent[k.lane], m.spent[top.lane]),
				cmp.Compare(k.lane, top.lane)) < 0 {
			top = &k
		}
	}
	for k := range classes {
		if m.conf.Starve > 0 && m.inOrder >= ordered && k.class < top.class && at.Sub(oldest(k)) >= m.conf.Starve &&
			(starved == nil || oldest(k).Before(oldest(*starved))) {
			starved = &k
		}
	}
	if top == nil {
		return nil, false
	}
	if starved != nil {
		return m.robin(classes[*starved]), true
	}
	return m.robin(classes[*top]), false
}

// robin goes round the flows of a class until one can pay.
func (m *model) robin(flows []*modelFlow) *Request {
	cost, weight, n := 0., 0., 0
	for _, f := range flows {
		weight += f.weight
		for _, r := range f.waiting {
			cost, n = cost+r.Cost, n+1
		}
	}
	for {
		f := flows[0]
		if !f.credited {
			f.credited = true
			f.deficit += cost / float64(n) * float64(len(flows)) / weight * f.weight
		}
		if f.deficit >= f.waiting[0].Cost {
			return f.waiting[0]
		}
		f.credited = false
		flows = append(flows[1:], f)
		m.flows = append(slices.DeleteFunc(m.flows, func(x *modelFlow) bool { return x == f }), f)
	}
}

func (m *model) serve(r *Request, early bool, at time.Time) {
	f := m.find(keyOf(r))
	f.deficit -= r.Cost
	f.served = at
	weight := 0.
	for _, o := range m.flows {
		if o.key.lane == r.Lane {
			weight += o.weight
		}
	}
	m.last = max(m.last, m.spent[r.Lane])
	m.spent[r.Lane] = m.last + r.Cost/weight
	m.inOrder++
	if early {
		m.inOrder = 0
	}
	m.remove(r)
}

// drive lets a queue and the model do what the operations say, one byte each with what it takes, and compares them.
func drive(t *testing.T, conf Config, ops []byte) {
	q := New(conf)
	m := &model{conf: conf, blocked: map[uint64]bool{}, spent: map[uint64]float64{}}
	at, number := start, 0
	take := func() (b byte) {
		if len(ops) > 0 {
			b, ops = ops[0], ops[1:]
		}
		return b
	}
	fate := map[*Request]string{}
	end := func(r *Request, how string) {
		if fate[r] != "" {
			t.Fatalf("%q was %s, and is %s", r.Owner, fate[r], how)
		}
		fate[r] = how
	}
	turn := func() *Request {
		want, early := m.next(at)
		if r := q.Next(at); r != want {
			t.Fatalf("%+v has the turn; want %+v", r, want)
		} else if r != nil && q.early != early {
			t.Fatalf("%q before a higher class: %t; want %t", r.Owner, q.early, early)
		}
		if q.Next(at) != nil {
			t.Fatal("two have the turn")
		}
		return want
	}
	served := func() bool {
		r := turn()
		if r == nil {
			return false
		}
		early := q.early
		q.Served(r, at)
		m.serve(r, early, at)
		end(r, "served")
		return true
	}
	enter := func(has *Request) {
		a, b := take(), take()
		r := &Request{Lane: uint64(a & 1), Class: int(a>>1&3) - 2, Flow: string('a' + rune(a>>3&3)), Bytes: int64(b & 63),
			Weight: []float64{.5, 1, 2, 4}[a>>5&3], Cost: float64(1+int(b)*3) / 64, Owner: number}
		if a>>7 == 1 {
			r.Deadline = at.Add(time.Duration(b) * time.Second)
		}
		number++
		if f := m.find(keyOf(r)); f != nil {
			f.weight = r.Weight
		}
		refuse := m.mustRefuse(r, has)
		out, ok := q.Enter(r, at)
		switch {
		case !ok && !refuse:
			t.Fatalf("%+v was refused", r)
		case !ok:
			end(r, "refused")
			return
		case len(out) == 0 && (len(m.all()) >= conf.MaxRequests || m.bytes()+r.Bytes > conf.MaxBytes):
			t.Fatalf("%+v entered a full queue", r)
		case len(out) > 0:
			if err := m.mayDisplace(r, has, out); err != nil {
				t.Fatalf("%+v entered: %v", r, err)
			}
		}
		for _, d := range out {
			m.remove(d)
			end(d, "displaced")
		}
		m.enter(r, at)
	}
	leave := func() {
		if all := m.all(); len(all) > 0 {
			r := all[int(take())%len(all)]
			q.Leave(r, at)
			m.remove(r)
			end(r, "gone")
		}
	}
	for len(ops) > 0 {
		at = at.Add(1) // no two flows have waited equally long
		switch op := take(); op % 16 {
		default:
			enter(nil)
		case 0, 1, 2:
			served()
		case 3, 4:
			if r := turn(); r != nil {
				q.Blocked(r)
				m.blocked[r.Lane] = true
			}
		case 5: // it looks for a worker while others come and go, and finds none
			if r := turn(); r != nil {
				enter(r)
				if op&16 > 0 {
					q.Wake()
					clear(m.blocked)
				}
				q.Blocked(r)
				m.blocked[r.Lane] = op&16 == 0
			}
		case 6:
			leave()
		case 7, 8:
			q.Wake()
			clear(m.blocked)
		case 9:
			at = at.Add(time.Duration(take()) * 20 * time.Millisecond)
		}
		if c := q.Counts(); c.Depth != len(m.all()) || c.Bytes != m.bytes() || c.Depth > conf.MaxRequests || c.Bytes > conf.MaxBytes {
			t.Fatalf("%d wait with %d bytes; want %d with %d", c.Depth, c.Bytes, len(m.all()), m.bytes())
		}
	}
	q.Wake()
	clear(m.blocked)
	for served() {
	}
	if c := q.Counts(); c.Depth != 0 || c.Bytes != 0 || len(fate) != number || len(q.lanes)+len(q.classes)+len(q.flows)+len(q.worst) != 0 {
		t.Fatalf("of %d requests %d have an end; left behind: %+v", number, len(fate), c)
	}
}

// small bounds make a queue of the model full often.
func small(byDeadline bool) Config {
	return Config{MaxRequests: 12, MaxBytes: 300, Starve: time.Second, ByDeadline: byDeadline}
}

// TestAsTheModel: the queue does what plain loops do, in whatever order things happen.
func TestAsTheModel(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		ops := make([]byte, 600)
		for i := range ops {
			ops[i] = byte(chance.Uint32())
		}
		drive(t, small(ops[0]&1 == 0), ops)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), false)
	f.Add([]byte{10, 1, 2, 10, 3, 4, 0, 3, 7, 5, 10, 200, 9, 255, 6, 1}, true)
	f.Fuzz(func(t *testing.T, ops []byte, byDeadline bool) { drive(t, small(byDeadline), ops) })
}
