package conf

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"net/url"
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

// words are what a key may need and the other columns of the table cannot say.
var words = map[string]func(s *scope) bool{
	"?nothing-split": func(s *scope) bool { return !s.anyPool(func(p *Pool) bool { return p.Disaggregation.On() }) },
	"?any-by-events": func(s *scope) bool { return s.anyPool((*Pool).goesByEvents) },
	"?by-events":     func(s *scope) bool { return s.p.goesByEvents() },
	"?publishes":     func(s *scope) bool { return s.p.publishes() },
	"?events-for-kvaware": func(s *scope) bool {
		return s.p.Strategy.Orders() != "kvaware" || s.p.publishes() || s.p.WorkersFile+s.c.Server.KVEventsListen != "" ||
			s.c.LMCache.On()
	},
	"?lends": func(s *scope) bool {
		return s.p.KVSource != "" || s.p.anyWorker(func(w *Worker) bool { return w.KVSource != "" })
	},
	"?alone": func(s *scope) bool { return !s.c.History.shares(&s.c.Cache) },
	"?fewer": func(s *scope) bool {
		k := &s.p.Kubernetes
		return s.p.Subset < len(s.p.Workers) || s.c.Server.AdminTokenFile+s.p.WorkersFile+s.p.WorkersDNS != "" ||
			k.Service+k.Selector != ""
	},
	"?history": func(s *scope) bool { return s.c.History.shares(&s.c.Cache) },
	"?not-a-sentinel": func(s *scope) bool {
		return !strings.Contains(s.v.String(), ":26379") || strings.Contains(s.v.String(), "master_name=")
	},
	"?version": func(s *scope) bool {
		_, err := strconv.ParseUint(cmp.Or(s.v.Interface().(map[string]string)["weights"], "0"), 10, 63)
		return err == nil
	},
	"?takes-otlp": func(s *scope) bool { return !otherPorts.MatchString(s.v.String()) },
	"?own-redis": func(s *scope) bool {
		own, _ := parts(s.v.String())
		state, _ := parts(s.c.Cache.Redis)
		history, _ := parts(s.c.History.Redis)
		return own == "" || own != state && own != history
	},
	"?no-database": func(s *scope) bool { return !clusterDB.MatchString(s.v.String()) },
	"?no-key": func(s *scope) bool {
		return count(s.c.Keys, func(k *Key) bool { return k.File == s.v.String() }) == 0
	},
	"?all-versions": func(s *scope) bool {
		n := count(s.p.Workers, func(w *Worker) bool { return w.Labels["weights"] != "" })
		return n == 0 || n == len(s.p.Workers)
	},
	"?labels-used": func(s *scope) bool {
		labels, d := s.v.Interface().(map[string]string), &s.p.Disaggregation
		return len(labels) == 0 || labels[RoleLabel]+labels["weights"]+d.Near != "" || len(d.Same) > 0 ||
			!s.p.all(Builtins...) || count(s.c.Keys, func(k *Key) bool { return k.Workers != "" }) > 0
	},
	"?places":          func(s *scope) bool { return s.p.MaxInFlight*len(s.p.Workers) <= s.c.Server.MaxInFlight },
	"?tokens-for-them": func(s *scope) bool { k := s.key(); return k.Tokens == 0 || k.Tokens/16 >= k.Requests },
	"?asked-for": func(s *scope) bool {
		name := s.model().Name
		asks := func(k *Key) bool {
			return slices.ContainsFunc(k.Models, func(pattern string) bool { return fits(pattern, name) })
		}
		after := func(m *Model) bool { return m.Fallback == name }
		return len(s.c.Keys) == 0 || count(s.c.Keys, asks)+count(s.c.Models, after) > 0
	},
	"?not-a-bucket": func(s *scope) bool { return !bucket.MatchString(s.v.String()) },
	"?not-of-body": func(s *scope) bool {
		return !slices.ContainsFunc(Identities, func(of string) bool {
			return strings.HasPrefix(of, ofBody) && strings.HasSuffix(of, "."+s.v.String())
		})
	},
	"?not-misspelt": func(s *scope) bool {
		known := strings.ToLower(strings.Join(Identities, " "))
		name := strings.ToLower(s.v.String())
		return strings.Contains(known, name) || !slices.ContainsFunc(strings.Fields(known), func(of string) bool {
			return editDistance(name, of) <= 2
		})
	},
	"?not-shared": func(s *scope) bool {
		return !slices.Contains(strings.Fields("authorization x-api-key user-agent host"), strings.ToLower(s.v.String()))
	},
	"?traces": func(s *scope) bool { return pathOf(s.v) == "" || strings.HasSuffix(pathOf(s.v), "/v1/traces") },
	"?path":   func(s *scope) bool { return pathOf(s.v) != "" },
	"?port-of-nobody": func(s *scope) bool {
		return !s.p.anyWorker(func(w *Worker) bool { return strings.HasSuffix(w.URL, fmt.Sprintf(":%d", s.v.Int())) })
	},
	"?member":      func(s *scope) bool { return slices.Contains(s.c.KVCache.L2.Members, s.v.String()) },
	"?two-members": func(s *scope) bool { return s.v.Len() > 1 },
	"?loopback":    func(s *scope) bool { return loopback(s.v.String()) },
	"?turns":       func(s *scope) bool { return s.anyPool(func(p *Pool) bool { return p.Bounded() && p.Queues() }) },
	"?two-keys":    func(s *scope) bool { return len(s.c.Keys) > 1 },
	"?long-salt":   func(s *scope) bool { t := s.key().CacheSalt.Text; return t == "" || len(t) >= minClientKey },
	"?own-salt": func(s *scope) bool {
		own := s.key().CacheSalt
		return own.Text == "" || count(s.c.Keys, func(k *Key) bool { return k.CacheSalt == own }) == 1
	},
	"?salts": func(s *scope) bool {
		return s.key().CacheSalt.On || count(s.c.Keys, func(k *Key) bool { return k.CacheSalt.On }) == 0
	},
	"?served": func(s *scope) bool { return s.anyPool(func(p *Pool) bool { return p.Serves(s.model().Name) }) },
	"?another-model": func(s *scope) bool {
		first := s.model().models()
		then := []string{s.v.String()}
		if m := modelOf(s.c, s.v.String()); m != nil {
			then = m.models()
		}
		return slices.ContainsFunc(then, func(m string) bool { return !slices.Contains(first, m) })
	},
	"?two-targets": func(s *scope) bool { return len(s.model().To) > 1 },
	"?https": func(s *scope) bool {
		return s.p.anyWorker(func(w *Worker) bool { return strings.HasPrefix(w.URL+w.MetricsURL, "https://") })
	},
	"?two-workers": func(s *scope) bool { return len(s.p.Workers) != 1 || discovers(s.p) },
	"?one-serves":  func(s *scope) bool { return discovers(s.p) || s.p.anyWorker((*Worker).takes) },
	"?cpu-kv": func(s *scope) bool {
		return discovers(s.p) || s.p.anyWorker(func(w *Worker) bool { return w.CPUTokens > 0 })
	},
	"?not-v1": func(s *scope) bool {
		return !slices.ContainsFunc(s.c.Server.RootPaths, func(p string) bool { return strings.Contains(p+"/", "/v1/") })
	},
	"?not-in-turn": func(s *scope) bool {
		return s.anyPool(func(p *Pool) bool { return p.Strategy.Orders() != "roundrobin" })
	},
	"?binds": func(s *scope) bool {
		return s.anyPool(func(p *Pool) bool { return !p.all("prefixaware", "kvaware", "roundrobin") })
	},
	"?not-any-host": func(s *scope) bool {
		return !strings.Contains(s.v.String(), "//0.0.0.0") && !strings.Contains(s.v.String(), "//[::]")
	},
	"?no-endpoint": func(s *scope) bool { return !strings.Contains(pathOf(s.v)+"/", "/v1/") },
	"?not-a-worker": func(s *scope) bool {
		return !s.p.anyWorker(func(w *Worker) bool { return strings.HasPrefix(s.v.String()+"/", w.URL+"/") })
	},
	"?own-strategy": func(s *scope) bool { return !s.p.all(Builtins...) },
	"?counts-delay": func(s *scope) bool { return !s.p.all("roundrobin", "session") },
	"?not-itself": func(s *scope) bool {
		u, err := url.Parse(s.v.String())
		return err != nil || u.Port() == "" || !slices.ContainsFunc([]string{s.c.Server.Listen, s.c.Server.Admin,
			s.c.KVCache.RESP, s.c.KVCache.HyperPod}, func(at string) bool {
			return u.Host == at || loopback(u.Host) && overlap(u.Host, at)
		})
	},
	"?own-metrics": func(s *scope) bool {
		return count(s.p.Workers, func(w *Worker) bool { return cmp.Or(w.MetricsURL, w.URL+"/metrics") == s.v.String() }) < 2
	},
	"?own-events": func(s *scope) bool {
		own := s.v.String()
		return own == "auto" || strings.Contains(own, "*") ||
			count(s.p.Workers, func(w *Worker) bool { return w.KVEvents == own }) < 2
	},
	"?not-http": func(s *scope) bool {
		return !s.p.anyWorker(func(w *Worker) bool {
			_, at, _ := strings.Cut(w.URL, "://")
			return s.v.String() == "tcp://"+at
		})
	},
	"?near-prefillers": func(s *scope) bool {
		prefill, _ := byRole(s.p)
		return discovers(s.p) || slices.ContainsFunc(prefill, func(w Worker) bool { return w.Labels[s.v.String()] != "" })
	},
	"?another-strategy": func(s *scope) bool { return s.v.String() != s.p.Strategy.Orders() },
	"?exact-name":       func(s *scope) bool { return s.p.namesOne() },
	"?more-names":       func(s *scope) bool { return len(s.p.Models) > 1 || strings.Contains(s.p.Models[0], "*") },
}

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

func (w *Worker) takes() bool { return !w.Drain }

// pathOf returns the path of a URL without its last slash.
func pathOf(url reflect.Value) string {
	_, path := parts(url.String())
	return strings.TrimSuffix("/"+path, "/")
}

// parts returns the HOST:PORT of a URL and what follows it.
func parts(url string) (host, path string) {
	_, rest, _ := strings.Cut(url, "://")
	host, path, _ = strings.Cut(rest, "/")
	return host[strings.LastIndexByte(host, '@')+1:], path
}

var (
	otherPorts = regexp.MustCompile(`:(4317|14250|14268|16686|9411)\b`) // gRPC, Jaeger's and Zipkin's own
	clusterDB  = regexp.MustCompile(`/[1-9]\d*\?.*cluster=true`)
	bucket     = regexp.MustCompile(`^\.|://`)
)

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
	for i := 0; i < min(len(actual), len(words)) && index.ReplaceAllString(actual[i], "") == words[i]; i++ {
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
		key := index.ReplaceAllString(path, "")
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
	d, ok := scopeOf(defaults, index.ReplaceAllString(s.path, "[0]"))
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
	return c
}

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
		default:
			return s, false
		}
		if p, is := s.v.Addr().Interface().(*Pool); is {
			s.p = p
		}
	}
	return s, true
}
