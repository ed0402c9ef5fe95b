package subset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	wantLife   = 10 * time.Minute // a want counts for so long after the last request that had it
	absentLife = time.Minute      // a model that no worker lists is not looked for again for so long: see want.rests
	maxWants   = 256              // that are remembered
	maxValues  = 16               // of a label: one with more names single workers, and no subset grows for it
	searchStep = 32               // workers that are asked at a time for a model that none of the subset lists
)

// Input is what a subset is chosen from.
type Input struct {
	Size    int            // 0 = all workers are used
	Self    string         // this router's name
	Others  []string       // those of the routers that it shares with
	Workers []worker.Spec  // of the pool; never changed: the same slice has the same workers
	Fences  []worker.Fence // of clients' keys
	Stats   []worker.Stats // of the workers in use
}

// Member is a worker that the router uses.
type Member struct {
	Why   string // it is used although it is not of the subset; "" = it is of it
	Guest bool   // it gets the requests of its sessions alone
}

// State describes a subset to an operator.
type State struct {
	Text    string            `json:"text"`    // the rest in words
	Size    int               `json:"size"`    // as configured
	Routers []string          `json:"routers"` // that divide the workers, with this one
	Grown   map[string]string `json:"grown"`   // workers that are used although they are not of the subset, and why
	Outside map[string]string `json:"-"`       // those that are not used, and why
	Unused  int               `json:"unused"`  // workers in no router's subset
	Since   time.Time         `json:"since"`   // when routers or workers last changed
}

// Subset remembers what a router uses of a pool, and for what. It is safe for concurrent use.
type Subset struct {
	// Due has a value when Choose is to be called soon. Make it before the first Want, with room for one.
	Due chan struct{}
	// Linger is how long a worker stays after the last need for it. Set it before the first call.
	Linger time.Duration

	mu    sync.Mutex // guards all below
	size  int
	names []string       // of the routers, this one first
	ids   []string       // of workers
	index map[string]int // of ids
	specs []worker.Spec  // by the index of ids
	marks []mark         // of specs
	of    [][]int        // which routers have each worker, as Assign returns it; nil = all are used
	order []int          // indices of workers, in this router's own order
	since time.Time
	kept  map[string]kept // workers in use, by id
	wants map[string]*want
}

// kept is a worker in use.
type kept struct {
	Member
	until time.Time
}

// mark is a label that several workers of a role have.
type mark struct {
	text    string
	workers []int // indices
}

// want is what requests have wanted from workers outside of the subset.
type want struct {
	worker.Want
	at     time.Time
	sent   uint64          // requests that the worker of a session had
	asked  map[string]bool // workers that were asked for a model
	absent time.Time       // when no worker was left to be asked
}

// rests returns for how long a model is not looked for again that was not found. In most fleets no worker is longer
// than others, whatever the prompts of their clients.
func (w *want) rests() time.Duration {
	if w.Longer > 0 {
		return wantLife
	}
	return absentLife
}

// Want implements worker.Config.Outside: it reports whether workers that are not used may serve what the request wants,
// and has them used if so.
func (s *Subset) Want(w worker.Want) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		return false
	}
	_, known := s.index[w.ID]
	_, used := s.kept[w.ID]
	switch {
	case w.ID != "" && (used || !known):
		return used
	case w.ID == "" && !slices.ContainsFunc(s.specs, func(o worker.Spec) bool { return labels.Admits(w.Fence, o.Labels) }):
		return false
	}
	key := strings.Join(append([]string{w.ID, w.Model, fmt.Sprint(w.Longer)}, w.Fence...), "\n")
	asks := s.wants[key]
	switch {
	case asks == nil && len(s.wants) >= maxWants, asks != nil && now.Sub(asks.absent) < asks.rests():
		return false
	case asks == nil || !asks.absent.IsZero():
		asks = &want{Want: w, asked: map[string]bool{}}
		s.wants[key] = asks
	}
	asks.at = now
	s.Look()
	return true
}

// Look has Choose called soon.
func (s *Subset) Look() {
	select {
	case s.Due <- struct{}{}:
	default:
	}
}

// Choose returns the workers to use now; nil = all.
func (s *Subset) Choose(in *Input, now time.Time) map[string]Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assign(in, now)
	if s.of == nil {
		s.kept = nil
		return nil
	}
	c := s.begin(in, now)
	c.growForRoles()
	c.growForLabels()
	for _, key := range slices.Sorted(maps.Keys(s.wants)) {
		w := s.wants[key]
		if now.Sub(w.at) > wantLife {
			delete(s.wants, key)
			continue
		}
		c.grow(w)
	}
	for i, why := range c.need {
		if was := s.kept[s.ids[i]]; why != "" && !was.Guest { // its numbers change while it stays
			why = cmp.Or(was.Why, why)
		}
		s.kept[s.ids[i]] = kept{Member{Why: why}, now.Add(s.Linger)}
	}
	maps.DeleteFunc(s.kept, func(id string, k kept) bool {
		_, known := s.index[id]
		return now.After(k.until) && !c.drained[id] || !known
	})
	use := make(map[string]Member, len(s.kept))
	for id, k := range s.kept {
		use[id] = k.Member
	}
	return use
}

// State describes the subset; nil = the pool has none.
func (s *Subset) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		return nil
	}
	d := &State{Size: s.size, Routers: slices.Sorted(slices.Values(s.names)), Grown: map[string]string{},
		Outside: map[string]string{}, Since: s.since}
	for i, id := range s.ids {
		var have []string
		for _, r := range s.of[i] {
			have = append(have, s.names[r])
		}
		k, used := s.kept[id]
		switch {
		case used && k.Why != "":
			d.Grown[id] = k.Why
		case used && !slices.Contains(s.of[i], 0):
			d.Grown[id] = "it was needed within the last " + s.Linger.String()
		case !used && len(have) == 0:
			d.Outside[id] = "it is in no router's subset"
		case !used:
			d.Outside[id] = "it is in the subset of " + strings.Join(have, ", ")
		}
		if len(have) == 0 {
			d.Unused++
		}
	}
	d.Text = fmt.Sprintf("%d of %d workers, as one of the routers %s", len(s.kept), len(s.ids),
		strings.Join(d.Routers, ", "))
	for _, id := range slices.Sorted(maps.Keys(d.Grown)) {
		d.Text += "; " + id + ": " + d.Grown[id]
	}
	return d
}

// assign computes anew which routers have which workers, if either have changed.
func (s *Subset) assign(in *Input, now time.Time) {
	if in.Size == 0 {
		s.of, s.size, s.ids = nil, 0, nil
		return
	}
	others := slices.DeleteFunc(slices.Clone(in.Others), func(n string) bool { return n == in.Self })
	slices.Sort(others)
	names := append([]string{in.Self}, slices.Compact(others)...)
	same := s.of != nil && s.size == in.Size && slices.Equal(names, s.names)
	same = same && len(s.specs) == len(in.Workers)
	if same && (len(s.specs) == 0 || &s.specs[0] == &in.Workers[0]) {
		return
	}
	ids, index, strata := make([]string, len(in.Workers)), map[string]int{}, map[worker.Role][]int{}
	for i := range in.Workers {
		w := &in.Workers[i]
		ids[i], index[w.ID] = w.ID, i
		strata[w.Role] = append(strata[w.Role], i)
		same = same && s.ids[i] == w.ID && s.specs[i].Role == w.Role
	}
	s.specs, s.marks = in.Workers, marksOf(in.Workers)
	if same {
		return
	}
	s.size, s.names, s.ids, s.index, s.since = in.Size, names, ids, index, now
	s.of, s.order = make([][]int, len(ids)), make([]int, len(ids))
	routers := make([]uint64, len(names))
	for i, n := range names {
		routers[i] = worker.KeyOf(n)
	}
	for _, stratum := range strata {
		workers := make([]uint64, len(stratum))
		for i, w := range stratum {
			workers[i] = worker.KeyOf(ids[w])
		}
		for i, of := range Assign(routers, workers, s.sizeOf(len(stratum))) {
			s.of[stratum[i]] = of
		}
	}
	for i := range s.order {
		s.order[i] = i
	}
	own := func(w int) uint64 { return worker.Rendezvous(routers[0], worker.KeyOf(ids[w])) }
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(own(b), own(a)) })
	if s.kept == nil {
		s.kept = map[string]kept{}
	}
	if s.wants == nil {
		s.wants = map[string]*want{}
	}
}

// sizeOf returns how many workers of n with one role a subset has: as large a part as of the pool, and two at least.
func (s *Subset) sizeOf(n int) int { return max(2, (s.size*n+len(s.ids)/2)/max(1, len(s.ids))) }

// choosing is one call of Choose.
type choosing struct {
	*Subset
	in      *Input
	now     time.Time
	need    map[int]string // workers that are used, with why
	stats   map[string][]*worker.Stats
	drained map[string]bool // by an operator: that lasts until undrain
}

func (s *Subset) begin(in *Input, now time.Time) *choosing {
	c := &choosing{Subset: s, in: in, now: now, need: map[int]string{}, stats: map[string][]*worker.Stats{},
		drained: map[string]bool{}}
	for i := range in.Stats {
		w := &in.Stats[i]
		c.stats[w.Endpoint] = append(c.stats[w.Endpoint], w)
		c.drained[w.Endpoint] = c.drained[w.Endpoint] || w.Drained
	}
	for i, of := range s.of {
		if slices.Contains(of, 0) {
			c.need[i] = ""
		}
	}
	return c
}

// serves reports whether a worker is up, or may be once it has been asked.
func (c *choosing) serves(i int) bool {
	ranks, used := c.stats[c.ids[i]]
	if !used {
		return !c.specs[i].Drain
	}
	return slices.ContainsFunc(ranks, func(w *worker.Stats) bool {
		return w.State == worker.Ready || w.State == worker.Starting || w.State == worker.Paused
	})
}

// add adds the next workers in the router's order that fit and may serve: up to n, of which up to fresh are not used
// yet.
func (c *choosing) add(n, fresh int, why string, fits func(i int) bool) {
	for _, i := range c.order {
		if n <= 0 || fresh <= 0 {
			return
		}
		_, has := c.need[i]
		_, used := c.stats[c.ids[i]]
		switch {
		case has || !fits(i):
		case c.serves(i):
			c.need[i] = why
			n--
			if !used {
				fresh--
			}
		case used: // else it would leave, and come again as one that may serve
			c.need[i] = why
		}
	}
}

// growForRoles adds workers of each role of which too few are up.
func (c *choosing) growForRoles() {
	var all, own, up [worker.Roles]int
	for i := range c.specs {
		all[c.specs[i].Role]++
	}
	for i := range c.need {
		own[c.specs[i].Role]++
		if c.serves(i) {
			up[c.specs[i].Role]++
		}
	}
	for role := range worker.Roles {
		if short := (3*own[role]+3)/4 - up[role]; all[role] > own[role] && short > 0 {
			c.add(short, 1+own[role]/8, fmt.Sprintf("%d of %d workers of the subset are up", up[role], own[role]),
				func(i int) bool { return c.specs[i].Role == role })
		}
	}
}

// growForLabels adds a worker for each fence of a key, and for each value of a label with few values, within each role,
// that no worker has which is up.
func (c *choosing) growForLabels() {
	has := func(i int) bool { _, in := c.need[i]; return in && c.serves(i) }
	for _, m := range c.marks {
		if !slices.ContainsFunc(m.workers, has) {
			c.add(1, 1, noOther(m.text), func(i int) bool { return slices.Contains(m.workers, i) })
		}
	}
	for _, f := range c.in.Fences {
		c.growFor(f)
	}
}

// marksOf returns the labels that a subset grows for, those of workers of one role together.
func marksOf(specs []worker.Spec) (all []mark) {
	type label struct {
		role        worker.Role
		name, value string
	}
	workers, values := map[label][]int{}, map[string]map[string]bool{}
	for i := range specs {
		for name, value := range specs[i].Labels {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
			if len(values[name]) <= maxValues {
				l := label{specs[i].Role, name, value}
				workers[l] = append(workers[l], i)
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(workers), func(a, b label) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, l := range sorted {
		if len(values[l.name]) <= maxValues {
			all = append(all, mark{l.name + "=" + l.value, workers[l]})
		}
	}
	return all
}

// growFor adds a worker that a fence admits, if none is up.
func (c *choosing) growFor(f worker.Fence) {
	fits := func(i int) bool { return labels.Admits(f, c.specs[i].Labels) }
	for i := range c.need {
		if fits(i) && c.serves(i) {
			return
		}
	}
	c.add(1, 1, noOther(strings.Join(f, ", ")), fits)
}

func noOther(label string) string { return "no other worker with " + label + " is up" }

// grow adds what requests have wanted.
func (c *choosing) grow(w *want) {
	switch {
	case w.ID != "":
		c.invite(w)
	case w.Model != "":
		c.search(w)
	default:
		c.growFor(w.Fence)
	}
}

// invite makes the worker of a session a guest for as long as the session is used.
func (c *choosing) invite(w *want) {
	i, known := c.index[w.ID]
	if _, has := c.need[i]; has || !known {
		return
	}
	sent, busy := uint64(0), false
	for _, rank := range c.stats[w.ID] {
		sent += rank.Sent
		busy = busy || rank.InFlight > 0
	}
	if busy || sent > w.sent {
		w.at, w.sent = c.now, sent
	}
	if k, used := c.kept[w.ID]; !used || k.Guest {
		why := "a session lives there, or it is drained; it gets nothing else"
		c.kept[w.ID] = kept{Member{why, true}, c.now.Add(c.Linger)}
	}
}

// search adds workers until one lists a model, with the length that is wanted. Those that do not list it leave again.
func (c *choosing) search(w *want) {
	fits := func(i int) bool { return labels.Admits(w.Fence, c.specs[i].Labels) }
	sought := "the model " + w.Model
	if w.Longer > 0 {
		sought += fmt.Sprintf(" for more than %d tokens", w.Longer)
	}
	waits := false
	for _, i := range c.order {
		for _, rank := range c.stats[c.ids[i]] {
			switch {
			case !fits(i):
			case rank.State == worker.Ready && w.isAt(rank):
				if _, has := c.need[i]; !has {
					c.need[i] = "it lists " + sought
				}
				return
			case rank.State == worker.Starting, rank.State == worker.Ready && rank.Models == nil:
				waits = true
			default:
				w.asked[c.ids[i]] = true
			}
		}
	}
	if waits || !w.absent.IsZero() {
		return
	}
	before := len(c.need)
	next := func(i int) bool { return fits(i) && !w.asked[c.ids[i]] }
	c.add(searchStep, searchStep, "it is asked for "+sought, next)
	if len(c.need) == before {
		w.absent = c.now
	}
}

// isAt reports whether a worker lists the model that is wanted. One of unknown length may be as long as any.
func (w *want) isAt(rank *worker.Stats) bool {
	i := slices.Index(rank.Models, w.Model)
	return i >= 0 && (i >= len(rank.Lengths) || rank.Lengths[i] == 0 || rank.Lengths[i] > w.Longer)
}
