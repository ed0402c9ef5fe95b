package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// validate checks a complete configuration, part by part.
func (r *report) validate(c *Config) {
	r.server(&c.Server)
	if len(c.Pools) == 0 {
		r.add("pools", "there is no pool", "add [[pools]] with one [[pools.workers]] and its url")
	}
	names := make(map[string]string) // name -> path of the pool
	urls := make(map[string]string)  // address -> path of the worker
	for i := range c.Pools {
		path := elem("pools", i)
		r.pool(path, c, &c.Pools[i])
		r.unique(names, c.Pools[i].Name, child(path, "name"), "give each pool its own name")
		r.reachable(c, i)
		r.workers(path, &c.Pools[i], urls)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Strategies)) {
		r.strategy(child("strategies", name), name, c.Strategies[name])
	}
}

func (r *report) server(s *Server) {
	r.address("server.listen", s.Listen)
	switch {
	case !r.address("server.admin", s.Admin):
	case s.Admin == s.Listen && !strings.HasSuffix(s.Admin, ":0"):
		r.add("server.admin", fmt.Sprintf("%q is server.listen too", s.Admin), "give the admin listener a port of its own")
	case !loopback(s.Admin) && s.AdminTokenFile == "":
		r.add("server.admin", fmt.Sprintf("%q is reachable from outside and has no token", s.Admin),
			"set admin_token_file, or listen on 127.0.0.1")
	}
	if s.MaxBodyBytes < 1 {
		r.add("server.max_body_bytes", fmt.Sprintf("%d is too small", s.MaxBodyBytes), "write bytes, as 67108864")
	}
	r.positive("server.read_timeout", s.ReadTimeout)
	r.positive("server.idle_timeout", s.IdleTimeout)
	if s.DrainTimeout < 0 {
		r.add("server.drain_timeout", "it is negative", `write "0s" to stop at once, or how long to wait`)
	}
	r.oneOf("server.log_format", s.LogFormat, "text", "json")
	r.oneOf("server.log_level", s.LogLevel, "debug", "info", "warn", "error")
}

func (r *report) pool(path string, c *Config, p *Pool) {
	r.name(child(path, "name"), p.Name)
	if _, own := c.Strategies[p.Strategy]; !own && !slices.Contains(Builtins, p.Strategy) {
		known := append(slices.Clone(Builtins), slices.Sorted(maps.Keys(c.Strategies))...)
		r.add(child(path, "strategy"), fmt.Sprintf("there is no strategy %q", p.Strategy),
			remedyFor(p.Strategy, known)+" A module of your own needs [strategies.NAME] with its path")
	}
	r.positive(child(path, "health_interval"), p.HealthInterval)
	r.positive(child(path, "scrape_interval"), p.ScrapeInterval)
	r.positive(child(path, "connect_timeout"), p.ConnectTimeout)
	r.positive(child(path, "header_timeout"), p.HeaderTimeout)
	r.positive(child(path, "stream_timeout"), p.StreamTimeout)
	r.positive(child(path, "session_ttl"), p.SessionTTL)
	if !(p.PrefillTokensPerSecond >= 1 && p.PrefillTokensPerSecond <= 1e9) { // NaN too
		r.add(child(path, "prefill_tokens_per_second"), fmt.Sprintf("%v is out of range", p.PrefillTokensPerSecond),
			"write tokens a second, as 15000")
	}
}

// reachable reports patterns that no request can get to, since an earlier pool takes all of theirs.
func (r *report) reachable(c *Config, i int) {
	path := child(elem("pools", i), "models")
	if len(c.Pools[i].Models) == 0 {
		r.add(path, "it is empty", `write model names, "org/*" or "*"`)
	}
	for m, pattern := range c.Pools[i].Models {
		at := elem(path, m)
		if r.lines[at] == 0 {
			at = path // the default
		}
		if star := strings.IndexByte(pattern, '*'); pattern == "" || star >= 0 && star != len(pattern)-1 {
			r.add(at, fmt.Sprintf("%q is no pattern", pattern), `write a model's name, "org/*" or "*"`)
			continue
		}
		for j := range i {
			// A pool that serves the pattern taken as a name serves all names that the pattern fits.
			if c.Pools[j].Serves(pattern) {
				r.add(at, fmt.Sprintf("%q is served by pool %q already", pattern, c.Pools[j].Name),
					"the first pool that fits serves: name other models, or put this pool first")
				break
			}
		}
	}
}

func (r *report) workers(path string, p *Pool, urls map[string]string) {
	if len(p.Workers) == 0 {
		r.add(child(path, "workers"), "there is no worker", `add [[pools.workers]] with url = "http://HOST:PORT"`)
	}
	ids := make(map[string]string)
	for j := range p.Workers {
		w := &p.Workers[j]
		at := elem(child(path, "workers"), j)
		r.name(child(at, "id"), w.ID)
		r.unique(ids, w.ID, child(at, "id"), "give each worker of a pool its own id")
		if address, ok := r.workerURL(child(at, "url"), w.URL); ok {
			r.unique(urls, address, child(at, "url"), "a worker belongs to one pool, once: list all its models there")
			r.metricsURL(child(at, "metrics_url"), w.MetricsURL)
		}
		if w.KVTokens < 0 {
			r.add(child(at, "kv_tokens"), fmt.Sprintf("%d is negative", w.KVTokens), "write tokens, or leave it out: it is scraped")
		}
		if !(w.Weight > 0 && w.Weight <= 1000) { // NaN too
			r.add(child(at, "weight"), fmt.Sprintf("%v is out of range", w.Weight), "write a number above 0, up to 1000")
		}
	}
}

func (r *report) strategy(path, name string, s Strategy) {
	r.name(path, name)
	if s.Path == "" && !slices.Contains(Builtins, name) {
		r.add(child(path, "path"), "it is missing, and "+name+" is no built-in",
			"give the module's file, or name one of "+strings.Join(Builtins, ", "))
	}
	for i, a := range s.Allow {
		r.oneOf(elem(child(path, "allow"), i), a, "kv")
	}
	if s.Fuel < 1 || s.Fuel > 1e12 {
		r.add(child(path, "fuel"), fmt.Sprintf("%d is out of range", s.Fuel), "write steps per pick, as 1000000")
	}
	if s.MemoryMB < 1 || s.MemoryMB > 4096 {
		r.add(child(path, "memory_mb"), fmt.Sprintf("%d is out of range", s.MemoryMB), "write MiB from 1 to 4096, as 16")
	}
}

func (r *report) positive(path string, d time.Duration) {
	if d <= 0 {
		r.add(path, fmt.Sprintf("%s is not above zero", d), `write how long, as "10s"`)
	}
}

func (r *report) oneOf(path, value string, known ...string) {
	if !slices.Contains(known, value) {
		r.add(path, fmt.Sprintf("%q is unknown", value), remedyFor(value, known))
	}
}

// unique reports a value that an earlier key holds already.
func (r *report) unique(seen map[string]string, value, path, remedy string) {
	if first, ok := seen[value]; ok {
		r.add(path, fmt.Sprintf("%q is %s already", value, first), remedy)
		return
	}
	seen[value] = path
}

// name checks what goes into metric labels, headers and logs.
func (r *report) name(path, s string) {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if s == "" || len(s) > 64 || strings.Trim(s, safe) != "" {
		r.add(path, fmt.Sprintf("%q is no name", s), "write up to 64 of a-z, A-Z, 0-9, dot, dash and underscore")
	}
}
