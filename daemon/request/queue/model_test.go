package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// model is a queue that looks at all requests for each answer. It has the rules of doc.go in plain loops.
type model struct {
	conf     Config
	flows    []*modelFlow // those of a key in the order of their turns
	keys     []*modelKey
	accounts map[accountName]*modelAccount
	classes  map[group]*modelClass
	now      map[int]float64
	blocked  map[uint64]bool
	earlier  map[string]time.Time
	booked   uint64
	inOrder  int
	rested   time.Time
}

func newModel(c Config) *model {
	return &model{conf: c, accounts: map[accountName]*modelAccount{}, classes: map[group]*modelClass{}, now: map[int]float64{},
		blocked: map[uint64]bool{}, earlier: map[string]time.Time{}}
}

// group is a class of a lane.
type group struct {
	lane  uint64
	class int
}

type modelClass struct{ level, lag float64 }

type modelAccount struct {
	weight, spent float64
	served        time.Time
}

type modelKey struct {
	name        keyName
	weight      float64
	tag, booked float64
	number      uint64
	since       time.Time
}

type modelFlow struct {
	name     flowName
	waiting  []*Request
	deficit  float64
	credited bool
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

// ofKey returns the requests of a key in a lane.
func (m *model) ofKey(name keyName) []*Request {
	return m.some(func(r *Request) bool { return nameOf(r).keyName == name })
}

// accountOf returns the name of a request's account.
func accountOf(n flowName) accountName { return accountName{class: n.class, key: n.key} }

// ofAccount returns the requests of a key in all lanes.
func (m *model) ofAccount(name accountName) []*Request {
	return m.some(func(r *Request) bool { return accountOf(nameOf(r)) == name })
}

// upTo returns what waits up to a class, and r if it belongs there.
func (m *model) upTo(class int, r *Request) []*Request {
	low := m.some(func(x *Request) bool { return x.Class <= class })
	if r.Class <= class {
		low = append(low, r)
	}
	return low
}

// yields returns the class that makes room for r first.
func (m *model) yields(r *Request) (class int, ok bool) {
	for class := -MaxClass; class <= MaxClass; class++ {
		if len(m.some(func(x *Request) bool { return x.Class == class })) > 0 && (m.conf.Starve <= 0 || m.share(m.upTo(class, r), 1) > kept) {
			return class, m.conf.Starve > 0 || class <= r.Class
		}
	}
	return 0, false
}

// without returns requests without some of them.
func without(all, some []*Request) []*Request {
	return slices.DeleteFunc(slices.Clone(all), func(r *Request) bool { return slices.Contains(some, r) })
}

// mayDisplace reports whether the requests are what a newcomer displaces: the last of a worst flow of a worst key, no
// more than needed, and none that the newcomer may not displace. turn has the turn.
func (m *model) mayDisplace(r, turn *Request, out []*Request) error {
	name, own := nameOf(out[0]), nameOf(r)
	if name == own || !slices.Contains(m.worst(r), name) {
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
		loses, has := m.share(without(m.ofAccount(accountOf(name)), out[:i]), m.accounts[accountOf(name)].weight),
			m.share(append(m.ofAccount(accountOf(own)), r), r.Weight)
		if accountOf(name) == accountOf(own) {
			loses = m.share(without(m.flow(name).waiting, out[:i]), 1)
			has = m.share(append(m.some(func(x *Request) bool { return nameOf(x) == own }), r), 1)
		}
		if name.class == r.Class && loses <= has {
			return fmt.Errorf("it displaced of who holds no more than itself")
		}
		if name.class != r.Class && m.conf.Starve > 0 && m.share(without(m.upTo(name.class, r), out[:i]), 1) <= kept {
			return fmt.Errorf("it displaced of what is kept for lower classes")
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
	worst := m.worst(r)
	for _, name := range worst {
		rest := without(m.flow(name).waiting, []*Request{turn})
		fits := false
		for n := 1; n <= len(rest) && !fits; n++ {
			out := slices.Clone(rest[len(rest)-n:])
			slices.Reverse(out)
			fits = m.mayDisplace(r, turn, out) == nil
		}
		if !fits {
			return true
		}
	}
	return len(worst) == 0
}

// worst returns the flows that hold the most, of the keys that hold the most of the class that makes room for r.
func (m *model) worst(r *Request) (worst []flowName) {
	class, ok := m.yields(r)
	if !ok {
		return nil
	}
	most := 0.
	of := map[accountName]float64{}
	for _, f := range m.flows {
		if a := accountOf(f.name); a.class == class {
			of[a] = m.share(m.ofAccount(a), m.accounts[a].weight)
			most = max(most, of[a])
		}
	}
	for _, f := range m.flows {
		largest := 0.
		for _, o := range m.flows {
			if accountOf(o.name) == accountOf(f.name) {
				largest = max(largest, m.share(o.waiting, 1))
			}
		}
		if s, is := of[accountOf(f.name)]; is && s == most && m.share(f.waiting, 1) == largest {
			worst = append(worst, f.name)
		}
	}
	return worst
}

// rests forgets what keys had if nothing has waited for so long.
func (m *model) rests(at time.Time) {
	if len(m.all()) == 0 && at.Sub(m.rested) >= forgetAfter {
		clear(m.accounts)
		clear(m.earlier)
	}
}

func (m *model) busy(at time.Time) bool { return len(m.all()) > 0 || at.Sub(m.rested) < forgetAfter }

func (m *model) account(name accountName, weight float64) *modelAccount {
	a := m.accounts[name]
	if a == nil {
		a = &modelAccount{weight: weight}
		m.accounts[name] = a
	}
	return a
}

func (m *model) enter(r *Request, at time.Time) {
	name := nameOf(r)
	g := group{r.Lane, r.Class}
	if len(m.some(func(x *Request) bool { return x.Lane == r.Lane })) == 0 {
		m.blocked[r.Lane] = false
	}
	if len(m.some(func(x *Request) bool { return group{x.Lane, x.Class} == g })) == 0 {
		m.classes[g] = &modelClass{level: m.now[r.Class]}
	}
	a := m.account(accountOf(name), r.Weight)
	f := m.flow(name)
	if f == nil {
		f = &modelFlow{name: name}
		m.flows = append(m.flows, f)
	}
	f.waiting = append(f.waiting, r)
	slices.SortStableFunc(f.waiting, func(a, b *Request) int {
		if m.conf.ByDeadline {
			return a.due().Compare(b.due())
		}
		return a.Entered.Compare(b.Entered)
	})
	if m.key(name.keyName) == nil {
		k := &modelKey{name: name.keyName, weight: r.Weight, since: at}
		m.keys = append(m.keys, k)
		m.book(k, a)
	}
}

// book books a key's next turn.
func (m *model) book(k *modelKey, a *modelAccount) {
	c := m.classes[group{k.name.lane, k.name.class}]
	from := max(a.spent, c.level)
	k.booked = mean(m.ofKey(k.name))
	a.spent = from + k.booked/a.weight
	k.tag = min(from, c.level+mostDebt) - c.lag
	m.booked++
	k.number = m.booked
}

func (m *model) remove(r *Request, at time.Time) {
	name := nameOf(r)
	f := m.flow(name)
	f.waiting = without(f.waiting, []*Request{r})
	if len(f.waiting) == 0 {
		m.flows = slices.DeleteFunc(m.flows, func(x *modelFlow) bool { return x == f })
	}
	if len(m.ofKey(name.keyName)) == 0 {
		k := m.key(name.keyName)
		a := m.accounts[accountOf(name)]
		a.spent -= k.booked / a.weight
		m.keys = slices.DeleteFunc(m.keys, func(x *modelKey) bool { return x == k })
		m.forget(accountOf(name))
	}
	if len(m.all()) == 0 {
		m.rested = at
	}
}

func (m *model) forget(name accountName) {
	if a := m.accounts[name]; len(m.ofAccount(name)) == 0 && a.spent <= m.now[name.class] {
		delete(m.accounts, name)
	}
}

// next returns whose turn it is, and whether before others as it has waited so long.
func (m *model) next(at time.Time) (r *Request, early bool) {
	first := m.first(func(k *modelKey) bool { return true })
	if first == nil {
		return nil, false
	}
	for m.conf.Starve > 0 && m.inOrder >= ordered {
		var k *modelKey
		for _, o := range m.keys {
			if !m.blocked[o.name.lane] && (k == nil || cmp.Or(o.since.Compare(k.since), cmp.Compare(o.number, k.number)) < 0) {
				k = o
			}
		}
		switch ahead := m.first(func(o *modelKey) bool { return o.name.lane == k.name.lane && o.name.class == k.name.class }); {
		case m.earlier[k.name.key].After(k.since):
			k.since = m.earlier[k.name.key]
		case at.Sub(k.since) < m.conf.Starve:
			return m.turnOf(first), false
		case k.name.class == first.name.class && m.accounts[k.name.account()].served.After(k.since):
			k.since = m.accounts[k.name.account()].served
		case k.tag-ahead.tag > m.conf.Starve.Seconds():
			k.since = at.Add(m.conf.Starve/8 - m.conf.Starve)
		default:
			return m.turnOf(k), true
		}
	}
	return m.turnOf(first), false
}

// first returns the key whose turn comes first, of those of open lanes of which a condition holds.
func (m *model) first(is func(k *modelKey) bool) (first *modelKey) {
	for _, k := range m.keys {
		if is(k) && !m.blocked[k.name.lane] && (first == nil || cmp.Or(cmp.Compare(first.name.class, k.name.class),
			cmp.Compare(m.had(k), m.had(first)), cmp.Compare(k.number, first.number)) < 0) {
			first = k
		}
	}
	return first
}

// had returns what a key had had when its turn was booked.
func (m *model) had(k *modelKey) float64 {
	return k.tag + m.classes[group{k.name.lane, k.name.class}].lag
}

// turnOf goes round the flows of a key until one can pay.
func (m *model) turnOf(k *modelKey) *Request {
	for {
		i := slices.IndexFunc(m.flows, func(f *modelFlow) bool { return f.name.keyName == k.name })
		f := m.flows[i]
		if !f.credited {
			f.deficit += mean(m.ofKey(k.name))
		}
		f.credited = f.deficit >= f.waiting[0].cost()
		if f.credited {
			return f.waiting[0]
		}
		m.flows = append(slices.Delete(m.flows, i, i+1), f)
	}
}

func mean(all []*Request) float64 {
	cost := 0.
	for _, r := range all {
		cost += r.cost()
	}
	return cost / float64(len(all))
}

func (m *model) serve(r *Request, early bool, at time.Time) {
	name := nameOf(r)
	k, a, c := m.key(name.keyName), m.accounts[accountOf(name)], m.classes[group{r.Lane, r.Class}]
	m.flow(name).deficit -= r.cost()
	first := m.first(func(o *modelKey) bool { return o.name.lane == r.Lane && o.name.class == r.Class })
	if late := m.now[r.Class] - catchUp - m.had(first); late > 0 {
		c.lag += late
	}
	c.level = max(c.level, m.had(first))
	m.now[r.Class] = max(m.now[r.Class], m.had(first))
	a.spent = max(a.spent+(r.cost()-k.booked)/a.weight, m.had(k)+r.cost()/a.weight)
	k.booked, a.served = 0, at
	m.inOrder++
	if early {
		m.inOrder = 0
		m.earlier[r.Key] = at
	}
	m.remove(r, at)
	if len(m.ofKey(name.keyName)) > 0 {
		k.since = at
		m.book(k, a)
	}
}

// began charges for a request that did not wait.
func (m *model) began(r *Request, at time.Time) bool {
	if !m.busy(at) {
		return false
	}
	a := m.account(accountOf(nameOf(r)), r.Weight)
	a.spent = max(a.spent, m.now[r.Class]) + r.cost()/r.Weight
	return true
}

// end corrects what the key of a request was charged for that took so many seconds.
func (m *model) end(r *Request, seconds float64, at time.Time) {
	if !m.busy(at) {
		return
	}
	name := nameOf(r)
	more := (r.Cost + seconds*(1+r.KV) - r.cost()) / r.Weight
	a := m.account(accountOf(name), r.Weight)
	a.spent += more
	if k := m.key(name.keyName); k != nil {
		k.tag += more
	}
	m.forget(accountOf(name))
}
