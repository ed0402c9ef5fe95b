package conf

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
		return count(s.c.Keys, func(k *Key) bool { return k.File == s.v.String() || k.Env == s.v.String() }) == 0
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
		const shared = "authorization x-api-key user-agent host cookie accept content-type origin"
		return !slices.Contains(strings.Fields(shared), strings.ToLower(s.v.String()))
	},
	"?not-of-one": func(s *scope) bool {
		const single = "x-request-id traceparent x-amzn-trace-id x-b3-traceid x-b3-spanid idempotency-key content-length date"
		return !slices.Contains(strings.Fields(single), strings.ToLower(s.v.String()))
	},
	"?differs": func(s *scope) bool { // it looks at the first table alone: a list may have 10,000
		if !strings.HasSuffix(parent(s.path), "[0]") || s.p != nil && discovers(s.p) {
			return true
		}
		same, all := s.alike()
		return same < all
	},
	"?once":    func(s *scope) bool { same, _ := s.alike(); return same == 1 },
	"?a-range": func(s *scope) bool { p := s.key().Priority; return p[0] < p[1] },
	"?key-comes": func(s *scope) bool {
		return s.anyKey(func(k *Key) bool { return k.Name == s.v.String() && s.c.reaches(k, s.p.mayServe) })
	},
	"?any-key": func(s *scope) bool { // of a key that may ask for nothing noteKey says so
		served := func(m string) bool { return s.anyPool(func(p *Pool) bool { return p.mayServe(m) }) }
		return s.anyKey(func(k *Key) bool { return s.c.reaches(k, s.p.mayServe) || !s.c.reaches(k, served) })
	},
	"?any-adapter": func(s *scope) bool {
		adapter := func(m string) bool { return s.p.mayServe(m) && !s.p.Names(m) }
		return s.anyKey(func(k *Key) bool { return s.c.reaches(k, adapter) })
	},
	"?star-alone": func(s *scope) bool {
		all, _ := s.v.Interface().([]string)
		return len(all) == 1 || !slices.Contains(all, "*")
	},
	"?own-file": func(s *scope) bool { return s.c.Server.AccessLog != s.c.Server.StateFile },
	"?known-ids": func(s *scope) bool {
		for _, id := range s.v.Interface().(map[string]string) {
			id, _, _ = strings.Cut(id, "#")
			if s.c.Server.AdminTokenFile == "" && !s.anyPool(func(p *Pool) bool {
				return discovers(p) || p.anyWorker(func(w *Worker) bool { return w.ID == id })
			}) {
				return false
			}
		}
		return true
	},
	"?one-shares": func(s *scope) bool { return s.anyPool(func(p *Pool) bool { return p.SharedTokens != -1 }) },
	"?own-source": func(s *scope) bool {
		return s.v.String() != s.p.WorkersDNS && s.v.String() != s.p.Kubernetes.Service
	},
	"?open":         func(s *scope) bool { return !loopback(s.c.Server.Listen) },
	"?any-strategy": func(s *scope) bool { return s.anyPool(func(p *Pool) bool { return !p.all(Builtins...) }) },
	"?traces":       func(s *scope) bool { return pathOf(s.v) == "" || strings.HasSuffix(pathOf(s.v), "/v1/traces") },
	"?path":         func(s *scope) bool { return pathOf(s.v) != "" },
	"?port-of-nobody": func(s *scope) bool {
		return !s.p.anyWorker(func(w *Worker) bool { return strings.HasSuffix(w.URL, fmt.Sprintf(":%d", s.v.Int())) })
	},
	"?member":      func(s *scope) bool { return slices.Contains(s.c.KVCache.L2.Members, s.v.String()) },
	"?two-members": func(s *scope) bool { return s.v.Len() > 1 },
	"?loopback":    func(s *scope) bool { return loopback(s.v.String()) },
	"?turns":       func(s *scope) bool { return s.anyPool(func(p *Pool) bool { return p.Bounded() && p.Queues() }) },
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
	"?one-serves": func(s *scope) bool {
		_, answer := byRole(s.p)
		return discovers(s.p) || count(answer, func(w *Worker) bool { return !w.Drain }) > 0
	},
	"?reached": func(s *scope) bool { // one note is enough
		at, _ := parts(s.v.String())
		return !loopback(at) || !strings.HasSuffix(s.path, ".workers[0].url")
	},
	"?cpu-kv": func(s *scope) bool {
		return discovers(s.p) || s.p.anyWorker(func(w *Worker) bool { return w.CPUTokens > 0 })
	},
	"?not-own-path": func(s *scope) bool { return !slices.ContainsFunc(s.c.Server.RootPaths, ownPath.MatchString) },
	"?not-ms": func(s *scope) bool {
		return !slices.ContainsFunc(s.c.Server.DeadlineHeader, func(h string) bool {
			return strings.HasSuffix(strings.ToLower(h), "-ms")
		})
	},
	"?not-in-memory": func(s *scope) bool { return !strings.HasPrefix(s.v.String(), "/dev/shm") },
	"?own-port":      func(s *scope) bool { return !otherScheme.MatchString(s.v.String()) },
	"?not-the-same":  func(s *scope) bool { return !slices.Contains(s.p.Disaggregation.Same, s.v.String()) },
	"?own-hosts": func(s *scope) bool { // a * is the worker's host
		hosts := map[string]bool{}
		return !strings.Contains(s.v.String(), "*") || !s.p.anyWorker(func(w *Worker) bool {
			own := cmp.Or(w.KVEvents, w.KVSource) != ""
			host, _ := parts(w.URL)
			host, _, _ = strings.Cut(host, ":")
			again := !own && hosts[host]
			hosts[host] = hosts[host] || !own
			return again
		})
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
		events, _ := parts(s.c.Server.KVEventsListen)
		return err != nil || u.Port() == "" || !slices.ContainsFunc([]string{s.c.Server.Listen, s.c.Server.Admin,
			s.c.KVCache.RESP, s.c.KVCache.HyperPod, events}, func(at string) bool {
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
			at, _ := parts(w.URL)
			return s.v.String() == "tcp://"+at || s.v.String() == "tcp://*:"+at[strings.LastIndexByte(at, ':')+1:]
		})
	},
	"?near-prefillers": func(s *scope) bool {
		prefill, _ := byRole(s.p)
		return discovers(s.p) || slices.ContainsFunc(prefill, func(w Worker) bool { return w.Labels[s.v.String()] != "" })
	},
	"?another-strategy": func(s *scope) bool { return s.v.String() != s.p.Strategy.Orders() },
	"?exact-name":       func(s *scope) bool { return s.p.namesOne() },
	"?patterns":         func(s *scope) bool { return strings.Contains(strings.Join(s.p.Models, ""), "*") },
	"?no-folder": func(s *scope) bool { // a whole path is the name that vLLM gives to a model of a folder
		return !slices.ContainsFunc(s.v.Interface().([]string), func(m string) bool {
			return strings.HasSuffix(m, "/") && m[0] != '/' && m[0] != '.'
		})
	},
	"?own-name": func(s *scope) bool {
		return slices.ContainsFunc(s.p.Models, func(name string) bool {
			m := modelOf(s.c, name)
			return m == nil || len(m.To) == 0
		})
	},
	"?threshold": func(s *scope) bool {
		n, err := strconv.Atoi(s.c.OptionValues(s.p)["concurrency_threshold"])
		return err != nil || n < s.p.MaxInFlight || s.p.Strategy.Orders() != "prefixaware"
	},
	"?port-of-tls": func(s *scope) bool {
		plain := s.c.Server.TLSCertFile == ""
		return !strings.HasSuffix(s.v.String(), ":443") && plain || !strings.HasSuffix(s.v.String(), ":80") && !plain
	},
}

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
	ownPath    = regexp.MustCompile(`/v1(/|$)|^/(health|ready|ping|sessions|endpoints)(/|$)`)

	otherScheme = regexp.MustCompile(`^http://[^/]*:443(/|$)|^https://[^/]*:80(/|$)`)
)
