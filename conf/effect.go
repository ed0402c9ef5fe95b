package conf

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// need is what a key of the file must have beside it, or be, to do what is meant by it.
type need struct{ keys, anyOf, say string }

// effects is the table of needs, which says how it is read.
//
//go:embed effect.txt
var effects string

// needs are the rows of effects.
var needs = func() (all []need) {
	for line := range strings.Lines(effects) {
		if row := strings.Split(strings.TrimSpace(line)+" | ", " | "); len(row) > 2 && row[0][0] != '#' {
			all = append(all, need{keys: row[0], anyOf: row[1], say: row[2]})
		}
	}
	return all
}()

// scope is a key that the file has, with the tables around it.
type scope struct {
	c    *Config
	path string
	p    *Pool         // nil outside of pools
	in   reflect.Value // the table that has the key
	v    reflect.Value // the key's value

	table reflect.Value // the outermost table of a list: the key, the model or the pool
}

func (s *scope) key() *Key     { return s.table.Addr().Interface().(*Key) }
func (s *scope) model() *Model { return s.table.Addr().Interface().(*Model) }

// alike returns how many tables of the list that the key's table is in have the same value, and how many there are.
func (s *scope) alike() (same, all int) {
	table := parent(s.path)
	list, _ := scopeOf(s.c, table[:strings.LastIndexByte(table, '[')])
	f, _ := field(s.in.Type(), s.path[len(table)+1:])
	for i := range list.v.Len() {
		if reflect.DeepEqual(list.v.Index(i).FieldByIndex(f.Index).Interface(), s.v.Interface()) {
			same++
		}
	}
	return same, list.v.Len()
}

// count returns how many are so.
func count[T any](all []T, is func(*T) bool) (n int) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// models returns the models that serve a name.
func (m *Model) models() []string {
	if len(m.To) == 0 {
		return []string{m.Name}
	}
	all := make([]string, len(m.To))
	for i := range m.To {
		all[i] = m.To[i].Model
	}
	return all
}

// anyKey reports whether a client's key is so, or whether there are none.
func (s *scope) anyKey(is func(*Key) bool) bool { return len(s.c.Keys) == 0 || count(s.c.Keys, is) > 0 }

func (s *scope) anyPool(is func(*Pool) bool) bool {
	return slices.ContainsFunc(s.c.Pools, func(p Pool) bool { return is(&p) })
}

func (p *Pool) anyWorker(is func(*Worker) bool) bool {
	return slices.ContainsFunc(p.Workers, func(w Worker) bool { return is(&w) })
}

// num returns a number, or the seconds of a duration.
func (s *scope) num() float64 {
	switch v := s.v.Interface().(type) {
	case time.Duration:
		return v.Seconds()
	case float64:
		return v
	}
	return float64(s.v.Int())
}

// meets reports whether the key has one thing of those that a row needs.
func (s *scope) meets(need string) bool {
	if is, ok := words[need]; ok {
		return is(s)
	}
	if low, high, ok := strings.Cut(need, ".."); ok {
		n := s.num()
		return n == 0 || n >= s.bound(low, math.Inf(-1)) && n <= s.bound(high, math.Inf(1))
	}
	key, value, is := strings.Cut(strings.TrimPrefix(need, "!"), "=")
	v := s.other(key).v
	holds := is && fmt.Sprint(v.Interface()) == value ||
		!is && !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
	return holds == (need[0] != '!')
}

// bound returns the number that a text is or that a key has, or without a text the last resort.
func (s *scope) bound(text string, without float64) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	if text == "" {
		return without
	}
	return s.other(text).num()
}

// other returns another key, in the pool, the key or the model that s is in.
func (s *scope) other(key string) *scope {
	actual, words := strings.Split(s.path, "."), strings.Split(key, ".")
	for i := range min(len(actual), len(words)) {
		if words[i] != "NAME" && words[i] != index.ReplaceAllString(actual[i], "") {
			break
		}
		words[i] = actual[i]
	}
	other, ok := scopeOf(s.c, strings.Join(words, "."))
	if !ok {
		panic("BUG: effect.txt: there is no key " + key)
	}
	return &other
}

// said returns what is noted of a key that does not meet the row.
func (n *need) said(s *scope) (what, remedy string) {
	if n.say == "" {
		return "it has no effect without " + strings.ReplaceAll(n.anyOf, " ", " or "), "set that, or leave this out"
	}
	what, remedy, _ = strings.Cut(n.say, "; ")
	return strings.Replace(what, "%v", fmt.Sprint(s.v.Interface()), 1), remedy
}

// all reports whether the pool's strategies, canaries and shadows too, are all among these.
func (p *Pool) all(known ...string) bool {
	all := append(beside(p), p.Strategy...)
	return !slices.ContainsFunc(all, func(s string) bool { return !slices.Contains(known, s) })
}

// goesByEvents reports whether a strategy of the pool may go by KV events: those that do not are built in.
func (p *Pool) goesByEvents() bool { return !p.all("prefixaware", "session", "roundrobin") }

// publishes reports whether the file says so of a worker of the pool.
func (p *Pool) publishes() bool {
	return p.KVEvents != "" || p.anyWorker(func(w *Worker) bool { return w.KVEvents != "" })
}

// reaches reports whether the key may ask for a model that is so: by its name, by an alias, or as a fallback.
func (c *Config) reaches(k *Key, is func(model string) bool) bool {
	if slices.ContainsFunc(k.Models, is) {
		return true
	}
	for i := range c.Models {
		m := &c.Models[i]
		may := slices.ContainsFunc(k.Models, func(pattern string) bool { return fits(pattern, m.Name) })
		for ; may && m != nil; m = modelOf(c, m.Fallback) {
			if slices.ContainsFunc(m.models(), is) || m.Fallback != "" && is(m.Fallback) {
				return true
			}
		}
	}
	return false
}

// noteEffects notes the keys of the file that do not have what needs says, and what is alike in one table once.
func noteEffects(r *report, c *Config) {
	defaults, noted, before := specimens(), "-", "" // the key noted last, and what of it
	of := map[string][]*need{}                      // by key: a file has two keys for each of 10,000 workers
	for i := range needs {
		for key := range strings.FieldsSeq(needs[i].keys) {
			of[key] = append(of[key], &needs[i])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.lines)) {
		key := ofStrategy.ReplaceAllString(index.ReplaceAllString(path, ""), "strategies.NAME")
		if strings.HasSuffix(path, "]") {
			key += "[]"
		}
		if len(of[key]) == 0 {
			continue
		}
		s, ok := scopeOf(c, path)
		i := slices.IndexFunc(of[key], func(n *need) bool {
			return ok && !slices.ContainsFunc(strings.Fields(n.anyOf), s.meets)
		})
		if i < 0 || strings.HasPrefix(path, noted+".") || r.usual(&s, defaults) {
			continue
		}
		what, remedy := of[key][i].said(&s)
		if parent(path) != parent(noted) || what != before {
			r.add(path, what, remedy)
		}
		noted, before = path, what
	}
}

// usual reports whether a key has its default value and the operator did not write it for its effect. That is so if the
// value is empty, if the key is a table, or if its table in the file has all keys.
func (r *report) usual(s *scope, defaults *Config) bool {
	d, ok := scopeOf(defaults, ofStrategy.ReplaceAllString(index.ReplaceAllString(s.path, "[0]"), "strategies.NAME"))
	if !ok || !reflect.DeepEqual(s.v.Interface(), d.v.Interface()) {
		return false
	}
	lacks := func(f reflect.StructField) bool { // lists of tables stand in a copy as comments
		tables := f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct
		return !tables && r.lines[child(parent(s.path), f.Tag.Get("toml"))] == 0
	}
	return s.v.IsZero() || s.v.Kind() == reflect.Struct || !slices.ContainsFunc(reflect.VisibleFields(s.in.Type()), lacks)
}

// specimens is a configuration with one of each table, by default.
func specimens() *Config {
	c, p := Default(), DefaultPool()
	p.Workers, p.Shadow, p.Canary = []Worker{DefaultWorker()}, []Shadow{defaultShadow()}, []Canary{{}}
	c.Pools, c.Keys, c.Models = []Pool{p}, []Key{DefaultKey()}, []Model{{To: []Target{{Weight: 1}}}}
	c.Strategies = map[string]Strategy{"NAME": DefaultStrategy()}
	return c
}

// ofStrategy matches the table of any strategy.
var ofStrategy = regexp.MustCompile(`^strategies\.[^.]+`)

// scopeOf finds the key at a path. ok is false for what has names of the user's own, as options.
func scopeOf(c *Config, path string) (s scope, ok bool) {
	s = scope{c: c, path: path, v: reflect.ValueOf(c).Elem()}
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch i, err := strconv.Atoi(step); {
		case s.v.Kind() == reflect.Slice && err == nil && i < s.v.Len():
			s.v = s.v.Index(i)
			if !s.table.IsValid() {
				s.table = s.v
			}
		case s.v.Kind() == reflect.Struct:
			f, known := field(s.v.Type(), step)
			if !known {
				return s, false
			}
			s.in, s.v = s.v, s.v.FieldByIndex(f.Index)
		case s.v.Type() == reflect.TypeFor[map[string]Strategy]():
			one := s.c.Strategies[step]
			s.v = reflect.ValueOf(&one).Elem()
		default:
			return s, false
		}
		if p, is := s.v.Addr().Interface().(*Pool); is {
			s.p = p
		}
	}
	return s, true
}
