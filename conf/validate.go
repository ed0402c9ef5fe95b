package conf

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// validate checks a complete configuration, part by part.
func validate(r *report, c *Config) {
	checkServer(r, &c.Server)
	checkStateFile(r, c.Server.StateFile, c.History.shares(&c.Cache))
	checkKeys(r, c.Keys, c.Server.AdminTokenFile)
	checkCache(r, &c.Cache)
	checkHistory(r, &c.History)
	checkTracing(r, &c.Tracing)
	checkSessions(r, &c.Sessions)
	checkKVCache(r, &c.KVCache)
	checkL2(r, &c.KVCache)
	checkLMCache(r, &c.LMCache)
	checkListeners(r, listenersOf(c))
	if len(c.Pools) == 0 {
		r.add("pools", "there is no pool", "add [[pools]] with one [[pools.workers]] and its url")
	}
	names := make(map[string]string) // name -> path of the pool
	urls := make(map[string]string)  // address -> path of the worker
	for i := range c.Pools {
		path := elem("pools", i)
		checkPool(r, path, c, &c.Pools[i])
		checkEvents(r, path, c.Pools[i].KVEvents, c.Pools[i].KVEventsReplay)
		checkSource(r, path, c.Pools[i].KVSource)
		r.unique(names, c.Pools[i].Name, child(path, "name"), "give each pool its own name")
		checkReachable(r, c, i)
		checkSources(r, path, &c.Pools[i], c.Server.AdminTokenFile != "")
		checkWorkers(r, child(path, "workers"), c.Pools[i].Workers, urls)
		checkNotSelf(r, child(path, "workers"), c.Pools[i].Workers, c.Server.Listen)
	}
	checkModels(r, c)
	for _, name := range slices.Sorted(maps.Keys(c.Strategies)) {
		checkStrategy(r, c, name)
	}
}

func checkPool(r *report, path string, c *Config, p *Pool) {
	r.name(child(path, "name"), p.Name)
	checkChain(r, child(path, "strategy"), c, p.Strategy)
	checkBeside(r, path, c, p)
	checkWorkerKey(r, path, p)
	checkAuthorities(r, child(path, "tls_ca_file"), p.TLSCAFile)
	checkBounds(r, path, p)
	if p.Continue < 0 || p.Continue > 8 {
		r.outOfRange(child(path, "continue"), p.Continue, "write how often, from 0 to 8, as 1")
	}
	if !within(p.RetryBudget, 0, 1) {
		r.outOfRange(child(path, "retry_budget"), p.RetryBudget, "write a share of requests from 0 to 1, as 0.2")
	}
	checkSubset(r, child(path, "subset"), p)
	r.between(child(path, "hand_over_bytes"), p.HandOverBytes, 0, 1<<40, "bytes, 0 for none,")
	checkTimes(r, path, p)
	r.oneOf(child(path, "weights"), p.Weights, "any", "one")
	r.oneOf(child(path, "kv_hints"), p.KVHints, "", "fetch", "pass")
	if p.KVHints == "fetch" && p.Disaggregation.On() {
		r.add(child(path, "kv_hints"), "the pool has prefillers, which hand KV over in their own way", "leave it out")
	}
	r.oneOf(child(path, "worker_sessions"), p.WorkerSessions, "auto", "on", "off")
	if !isPath(p.InvocationPath) {
		r.add(child(path, "invocation_path"), fmt.Sprintf("%.80q is no path", p.InvocationPath), `write as "/invocations"`)
	}
	if p.SharedTokens < -1 {
		r.add(child(path, "shared_kv_tokens"), fmt.Sprintf("%d is negative", p.SharedTokens),
			"write the tokens that the shared tier keeps; -1 = there is none; 0 = as much as [kv_cache] holds, if it is open")
	}
	if !within(p.CPURate, 1, 1e9) {
		r.outOfRange(child(path, "cpu_kv_rate"), p.CPURate, "write tokens a second, as 120000")
	}
	if !within(p.SharedRate, 1, 1e9) {
		r.outOfRange(child(path, "shared_kv_rate"), p.SharedRate, "write tokens a second, as 40000")
	}
	if !within(p.PrefillTokensPerSecond, 1, 1e9) {
		r.outOfRange(child(path, "prefill_tokens_per_second"), p.PrefillTokensPerSecond, "write tokens a second, as 15000")
	}
	checkTokens(r, child(path, "tokens"), &p.Tokens)
	checkQueue(r, child(path, "queue"), &p.Queue)
	checkDisaggregation(r, path, p)
	checkAdapters(r, path, &p.Adapters)
}

// checkSubset wants two workers of each role: one alone leaves nobody when it is down.
func checkSubset(r *report, path string, p *Pool) {
	least := 2
	if p.Disaggregation.On() {
		least = 4
	}
	if p.Subset != 0 && (p.Subset < least || p.Subset > maxCount) {
		r.outOfRange(path, p.Subset, fmt.Sprintf("write workers from %d to %d, two of each role at least, as 200; 0 = "+
			"the router uses all", least, maxCount))
	}
}

// maxTokensBudget is the longest that a request may wait for its prompt's ids: more costs more than a prefill saves.
const maxTokensBudget = 2 * time.Second

func checkTokens(r *report, path string, t *Tokens) {
	if !within(t.Budget, 0, maxTokensBudget) {
		r.outOfRange(child(path, "budget"), t.Budget, `write a time from "0s" to "2s", as "50ms"`)
	}
	r.between(child(path, "cache_bytes"), t.CacheBytes, minCache, 1<<40, "bytes")
}

// isPath reports whether s is the path of a URL and nothing else.
func isPath(s string) bool {
	u, err := url.Parse(s)
	return err == nil && strings.HasPrefix(s, "/") && u.Path == s && u.Host == ""
}

func checkTimes(r *report, path string, p *Pool) {
	r.notNegative(child(path, "slow_start"), p.SlowStart,
		"to give a worker that is back its whole share at once, or how long to wait")
	r.workerTime(child(path, "health_interval"), p.HealthInterval)
	r.workerTime(child(path, "scrape_interval"), p.ScrapeInterval)
	r.workerTime(child(path, "connect_timeout"), p.ConnectTimeout)
	r.workerTime(child(path, "header_timeout"), p.HeaderTimeout)
	r.notNegative(child(path, "first_byte_retry"), p.FirstByteRetry, "for never, or how long to wait")
	if p.FirstByteRetry >= p.HeaderTimeout && p.HeaderTimeout > 0 {
		r.add(child(path, "first_byte_retry"),
			fmt.Sprintf("%s is not below header_timeout, %s: it never comes to it", p.FirstByteRetry, p.HeaderTimeout),
			`write less, or "0s" for never`)
	}
	r.workerTime(child(path, "stream_timeout"), p.StreamTimeout)
	r.workerTime(child(path, "down_grace"), p.DownGrace)
	r.workerTime(child(path, "pause_max"), p.PauseMax)
}

// checkReachable reports patterns that no request reaches, since an earlier pool serves every name that they fit.
func checkReachable(r *report, c *Config, i int) {
	r.patterns(child(elem("pools", i), "models"), c.Pools[i].Models, func(at, pattern string) {
		for j := range i {
			// A pool that serves the pattern taken as a name serves all names that the pattern fits.
			if c.Pools[j].Serves(pattern) {
				r.add(at, fmt.Sprintf("%q is served by pool %q already", pattern, c.Pools[j].Name),
					"the first pool that fits serves: name other models, or put this pool first")
				return
			}
		}
	})
}

// ociPath is the path of a module in a registry. A tag says nothing of what is run, so a digest is needed.
var ociPath = regexp.MustCompile(`^oci://[^/@]+/[^@]+@sha256:[0-9a-f]{64}$`)

func checkStrategy(r *report, c *Config, name string) {
	path, s := child("strategies", name), c.Strategies[name]
	r.name(path, name)
	toCome := s.Path == "" && c.Server.StrategiesDir != "" && !slices.Contains(Builtins, name)
	if !c.HasModule(name) && !toCome {
		r.add(child(path, "path"), "it is missing, and "+name+" is no built-in",
			"give the module's file, or name one of "+strings.Join(Builtins, ", "))
	}
	if InRegistry(s.Path) && !ociPath.MatchString(s.Path) {
		r.add(child(path, "path"), fmt.Sprintf("%.200q names no module in a registry by its digest", s.Path),
			"write oci://registry/name@sha256: and the 64 hex digits that warmpath plugin pack, oras or crane prints")
	}
	if s.PullSecret != "" && !InRegistry(s.Path) {
		r.add(child(path, "pull_secret"), "the module comes from no registry", `leave it out, or write path = "oci://..."`)
	}
	if sum, err := hex.DecodeString(s.SHA256); s.SHA256 != "" && (err != nil || len(sum) != 32) {
		r.add(child(path, "sha256"), fmt.Sprintf("%.80q is no SHA-256", s.SHA256),
			"write the 64 hex digits that sha256sum or warmpath plugin check prints")
	} else if s.SHA256 != "" && s.Path == "" && !toCome {
		r.add(child(path, "sha256"), "a built-in has no file", "give the module's path, or leave it out")
	}
	for i, a := range s.Allow {
		checkAllowed(r, elem(child(path, "allow"), i), a)
	}
	r.oneOf(child(path, "on_failure"), s.OnFailure, "", "fallback", "reject")
	if !within(s.Fuel, 1, 1e12) {
		r.outOfRange(child(path, "fuel"), s.Fuel, "write steps per pick, as 1000000")
	}
	if !within(s.PickTimeout, time.Millisecond, time.Second) {
		r.outOfRange(child(path, "pick_timeout"), s.PickTimeout, `write a time from "1ms" to "1s", as "5ms"`)
	}
	if !within(s.MemoryMB, 1, 4096) {
		r.outOfRange(child(path, "memory_mb"), s.MemoryMB, "write MiB from 1 to 4096, as 16")
	}
}

// checkBounds checks what bounds the room at a worker.
func checkBounds(r *report, path string, p *Pool) {
	if p.Overflow != 429 && p.Overflow != 503 {
		r.outOfRange(child(path, "overflow_status"), p.Overflow, "write 429 or 503")
	}
	r.between(child(path, "max_in_flight"), p.MaxInFlight, 0, maxCount, "requests at one worker")
	if !within(p.MaxWait, 0, 1e6) {
		r.outOfRange(child(path, "max_wait_seconds"), p.MaxWait, "write seconds, as 2.0, or 0 for no bound")
	}
	if !within(p.MaxKVUse, 0, 10) {
		r.outOfRange(child(path, "max_kv_use"), p.MaxKVUse, "write a share of the worker's KV, as 0.9, or 0 for no bound")
	}
}
