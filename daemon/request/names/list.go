package names

import (
	"encoding/binary"
	"hash/fnv"
	"math"
)

// Target is a model that serves a part of an alias's sessions.
type Target struct {
	Model  string
	Weight float64 // above 0
}

// Alias is a name for other models.
type Alias struct {
	Name    string
	Targets []Target // none: the name is a model's own, and nothing but hidden
	Hidden  bool     // no list shows it

	Fallback string // the alias or model that serves a request which fails here; "" = none does
	On       Reason // why it does

	next  *Alias // the models that Fallback means, with this Name
	later bool   // it is such a next one
	split string // the alias whose sessions share the choice among Targets; "" = Name
}

// List has the names of a configuration. It is never changed. A nil List has none.
type List struct {
	aliases []Alias
	of      map[string]*Alias
}

// New makes a list, nil of no names.
func New(all []Alias) *List {
	if len(all) == 0 {
		return nil
	}
	l := &List{aliases: all, of: make(map[string]*Alias, len(all))}
	for i := range all {
		a := &all[i]
		if len(a.Targets) == 0 && a.Fallback != "" {
			a.Targets = []Target{{Model: a.Name, Weight: 1}}
		}
		l.of[a.Name] = a
	}
	for i := range all {
		all[i].next = l.follow(&all[i], all[i].Name, MaxFallbacks)
	}
	return l
}

// All returns the aliases in the order of the file. Names that are only hidden are among them.
func (l *List) All() []Alias {
	if l == nil {
		return nil
	}
	return l.aliases
}

// Find returns the alias of that name, nil if the name is a model's own.
func (l *List) Find(name string) *Alias {
	if l == nil {
		return nil
	}
	if a := l.of[name]; a != nil && len(a.Targets) > 0 {
		return a
	}
	return nil
}

// Hides reports whether no list may show the name.
func (l *List) Hides(name string) bool {
	if l == nil {
		return false
	}
	a := l.of[name]
	return a != nil && a.Hidden
}

// Key returns a hash of a session's name. Every router computes the same.
func Key(parts ...string) uint64 {
	h := fnv.New64a()
	var length [4]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint32(length[:], uint32(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return spread(h.Sum64())
}

// spread makes each bit depend on all of them: those of FNV's beginning do not.
func spread(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Choose returns the model for the session of that key. The choice is a rendezvous of weights: a target whose weight
// changes gains or loses sessions, and no session moves between two others.
func (a *Alias) Choose(key uint64) string {
	best, chosen := math.Inf(-1), ""
	for i := range a.Targets {
		t := &a.Targets[i]
		u := (float64(spread(key^Key(t.Model))>>11) + .5) / (1 << 53)
		if score := math.Log(u) / t.Weight; score > best {
			best, chosen = score, t.Model
		}
	}
	return chosen
}

// has reports whether the model is a target.
func (a *Alias) has(model string) bool {
	for i := range a.Targets {
		if a.Targets[i].Model == model {
			return true
		}
	}
	return false
}
