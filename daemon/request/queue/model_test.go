package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// model is a queue that looks at all requests for each answer. It has the rules of doc.go in plain loops.
type model struct {
	conf    Config
	flows   []*modelFlow // those of a key in the order of their turns
	keys    []*modelKey  // those of a class in the order of their turns
	blocked map[uint64]bool
	spent   map[uint64]float64 // by lane
	last    float64            // of the lane that was served last, before that
	inOrder int
}

// account is what a flow or a key may take.
type account struct {
	weight   float64
	deficit  float64
	credited bool
}

type modelKey struct {
	account
	name keyName
}

type modelFlow struct {
	account
	name    flowName
	waiting []*Request
	served  time.Time
}

// some returns the requests of which a condition holds.
func (m *model) some(is func(r *Request) bool) (some []*Request) {
	for _, f := range m.flows {
		for _, r := range f.waiting {
			if is(r) {
				some = append(some, r)
			}
		}
	}
	return some
}

func (m *model) all() []*Request { return m.some(func(*Request) bool { return true }) }

func (m *model) bytes() (n int64) {
	for _, r := range m.all() {
		n += r.Bytes
	}
	return n
}

// share is what requests hold of the bounds, for a weight.
func (m *model) share(all []*Request, weight float64) float64 {
	bytes := int64(0)
	for _, r := range all {
		bytes += r.Bytes
	}
	return max(float64(len(all))/float64(m.conf.MaxRequests), float64(bytes)/float64(m.conf.MaxBytes)) / weight
}

func (m *model) flow(name flowName) *modelFlow {
	for _, f := range m.flows {
		if f.name == name {
			return f
		}
	}
	return nil
}

func (m *model) key(name keyName) *modelKey {
	for _, k := range m.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

// ofKey returns the requests of a key.
func (m *model) ofKey(name keyName) []*Request {
	return m.some(func(r *Request) bool { return nameOf(r).keyName == name })
}

// without returns requests without some of them.
func without(all, some []*Request) []*Request {
	return slices.DeleteFunc(slices.Clone(all), func(r *Request) bool { return slices.Contains(some, r) })
}

// mayDisplace reports whether the requests are what a newcomer displaces: the last of a worst flow of a worst key, no
// more than needed, and none that the newcomer may not displace. turn has the turn.
func (m *model) mayDisplace(r, turn *Request, out []*Request) error {
	name, own := nameOf(out[0]), nameOf(r)
	if name == own || !slices.Contains(m.worst(), name) {
		return fmt.Errorf("it displaced of flow %v, which is none of the worst", name)
	}
	rest := without(m.flow(name).waiting, []*Request{turn})
	for i, d := range out {
		if i >= len(rest) || d != rest[len(rest)-1-i] {
			return fmt.Errorf("it displaced not the last of flow %v", name)
		}
		left := without(m.all(), out[:i])
		if len(left) < m.conf.MaxRequests && m.bytesOf(left)+r.Bytes <= m.conf.MaxBytes {
			return fmt.Errorf("it displaced more than it needed")
		}
		loses, has := m.share(without(m.ofKey(name.keyName), out[:i]), m.key(name.keyName).weight),
			m.share(append(m.ofKey(own.keyName), r), r.Weight)
		if name.keyName == own.keyName {
			loses = m.share(without(m.flow(name).waiting, out[:i]), 1)
			has = m.share(append(m.some(func(x *Request) bool { return nameOf(x) == own }), r), 1)
		}
		if name.class == r.Class && loses <= has {
			return fmt.Errorf("it displaced of who holds no more than itself")
		}
	}
	left := without(m.all(), out)
	if len(left) >= m.conf.MaxRequests || m.bytesOf(left)+r.Bytes > m.conf.MaxBytes {
		return fmt.Errorf("it displaced less than it needed")
	}
	return nil
}

func (m *model) bytesOf(all []*Request) (n int64) {
	for _, r := range all {
		n += r.Bytes
	}
	return n
}

// mustRefuse reports whether a newcomer finds no room, by one of the worst flows at least.
func (m *model) mustRefuse(r, turn *Request) bool {
	if m.fits(r) {
		return false
	}
	for _, name := range m.worst() {
		rest := without(m.flow(name).waiting, []*Request{turn})
		fits := false
		for n := 1; n <= len(rest) && !fits && name.class <= r.Class; n++ {
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

// worst returns the flows that hold the most, of the keys that hold the most of the lowest class.
func (m *model) worst() (worst []flowName) {
	class, most := math.MaxInt, 0.
	for _, k := range m.keys {
		if s := m.share(m.ofKey(k.name), k.weight); k.name.class < class || k.name.class == class && s > most {
			class, most = k.name.class, s
		}
	}
	for _, k := range m.keys {
		if k.name.class != class || m.share(m.ofKey(k.name), k.weight) != most {
			continue
		}
		largest := 0.
		for _, f := range m.flows {
			if f.name.keyName == k.name {
				largest = max(largest, m.share(f.waiting, 1))
			}
		}
		for _, f := range m.flows {
			if f.name.keyName == k.name && m.share(f.waiting, 1) == largest {
				worst = append(worst, f.name)
			}
		}
	}
	return worst
}

func (m *model) enter(r *Request, at time.Time) {
	name := nameOf(r)
	f := m.flow(name)
	if m.key(name.keyName) == nil {
		if !slices.ContainsFunc(m.keys, func(k *modelKey) bool { return k.name.lane == r.Lane }) {
			m.blocked[r.Lane], m.spent[r.Lane] = false, m.last
		}
		m.keys = append(m.keys, &modelKey{name: name.keyName, account: account{weight: r.Weight}})
	}
	if f == nil {
		f = &modelFlow{name: name, served: at, account: account{weight: 1}}
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
	name := nameOf(r)
	f := m.flow(name)
	f.waiting = without(f.waiting, []*Request{r})
	if len(f.waiting) == 0 {
		m.flows = slices.DeleteFunc(m.flows, func(x *modelFlow) bool { return x == f })
	}
	if len(m.ofKey(name.keyName)) == 0 {
		m.keys = slices.DeleteFunc(m.keys, func(k *modelKey) bool { return k.name == name.keyName })
	}
}

// next returns whose turn it is, and whether before a higher class.
func (m *model) next(at time.Time) (r *Request, early bool) {
	type group struct {
		lane  uint64
		class int
	}
	oldest := map[group]time.Time{}
	var top, starved *group
	for _, f := range m.flows {
		g := group{f.name.lane, f.name.class}
		if o, has := oldest[g]; !m.blocked[g.lane] && (!has || f.served.Before(o)) {
			oldest[g] = f.served
		}
	}
	for g := range oldest {
		if top == nil || cmp.Or(cmp.Compare(top.class, g.class), cmp.Compare(m.spent[g.lane], m.spent[top.lane]),
			cmp.Compare(g.lane, top.lane)) < 0 {
			top = &g
		}
	}
	for g := range oldest {
		if m.conf.Starve > 0 && m.inOrder >= ordered && g.class < top.class && at.Sub(oldest[g]) >= m.conf.Starve &&
			(starved == nil || oldest[g].Before(oldest[*starved])) {
			starved = &g
		}
	}
	if top == nil {
		return nil, false
	}
	if starved != nil {
		top = starved
	}
	return m.robin(top.lane, top.class), starved != nil
}

// robin goes round the keys of a class until one can pay for the turn of its flows.
func (m *model) robin(lane uint64, class int) *Request {
	var keys []*modelKey
	weight := 0.
	for _, k := range m.keys {
		if k.name.lane == lane && k.name.class == class {
			keys = append(keys, k)
			weight += k.weight
		}
	}
	all := m.some(func(r *Request) bool { return r.Lane == lane && r.Class == class })
	for {
		k := keys[0]
		r := m.turnOf(k)
		if k.pays(r, mean(all)*float64(len(keys))/weight) {
			return r
		}
		keys = append(keys[1:], k)
		m.keys = append(slices.DeleteFunc(m.keys, func(x *modelKey) bool { return x == k }), k)
	}
}

// turnOf goes round the flows of a key until one can pay.
func (m *model) turnOf(k *modelKey) *Request {
	for {
		i := slices.IndexFunc(m.flows, func(f *modelFlow) bool { return f.name.keyName == k.name })
		f := m.flows[i]
		if f.pays(f.waiting[0], mean(m.ofKey(k.name))) {
			return f.waiting[0]
		}
		m.flows = append(slices.Delete(m.flows, i, i+1), f)
	}
}

func mean(all []*Request) float64 {
	cost := 0.
	for _, r := range all {
		cost += r.Cost
	}
	return cost / float64(len(all))
}

// pays reports whether an account has enough for a request, perhaps with the quantum of this round.
func (a *account) pays(r *Request, quantum float64) bool {
	if !a.credited {
		a.deficit += quantum * a.weight
	}
	a.credited = a.deficit >= r.Cost
	return a.credited
}

func (m *model) serve(r *Request, early bool, at time.Time) {
	f, k := m.flow(nameOf(r)), m.key(nameOf(r).keyName)
	f.deficit -= r.Cost
	k.deficit -= r.Cost
	f.served = at
	weight := 0.
	for _, o := range m.keys {
		if o.name.lane == r.Lane {
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
