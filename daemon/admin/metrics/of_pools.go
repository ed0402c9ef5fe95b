package metrics

import (
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
)

// workerCounts holds the readings of a worker.
type workerCounts struct {
	worker.Stats
	blocks int // that the worker holds by the prefix index
}

// workerLabels are the labels of every metric of a worker.
var workerLabels = []string{"pool", "worker"}

// ofFleets has what each worker shows of itself in a large fleet too.
var ofFleets = []reading[workerCounts]{
	gauge("worker_up", "1 if the worker gets requests.", workerLabels,
		func(w workerCounts) float64 { return bit(w.Up) }),
	gauge("worker_in_flight", "Requests sent and not ended.", workerLabels,
		func(w workerCounts) float64 { return float64(w.InFlight) }),
	gauge("worker_kv_usage", "KV cache in use, 0 to 1, as the worker says.", workerLabels,
		func(w workerCounts) float64 { return w.KVUsage }),
}

var ofWorkers = []reading[workerCounts]{
	gauge("worker_draining", "1 if the worker gets no new requests because it is going: it was asked to drain, be it up "+
		"or down, or its answers said so.", workerLabels,
		func(w workerCounts) float64 { return bit(w.Drained || w.State == worker.Draining) }),
	total("worker_restarts_total", "New processes of the worker that were seen, by the start time in its metrics.",
		workerLabels,
		func(w workerCounts) float64 { return float64(w.Restarts) }),
	total("worker_left_total", "Times that a worker's answers said it is going.", workerLabels,
		func(w workerCounts) float64 { return float64(w.Left) }),
	gauge("worker_breaker_state", "0 = closed, 1 = a trial is due or runs, 2 = open.", workerLabels,
		func(w workerCounts) float64 { return float64(w.Breaker) }),
	gauge("worker_others_in_flight", "Requests that other routers have sent and not ended, as far as they report.",
		workerLabels, func(w workerCounts) float64 { return float64(w.Theirs) }),
	gauge("worker_running", "Requests running, as the worker says.", workerLabels,
		func(w workerCounts) float64 { return float64(w.Running) }),
	gauge("worker_waiting", "Requests waiting, as the worker says.", workerLabels,
		func(w workerCounts) float64 { return float64(w.Waiting) }),
	total("worker_preemptions_total", "Requests that the worker's engine has put back for want of KV, as it says: each "+
		"is computed again.", workerLabels, func(w workerCounts) float64 { return float64(w.Preempts) }),
	gauge("worker_metrics_unread", "1 while the worker is up and no metrics of an engine can be read from it: its queue, "+
		"KV use and speed are not known.", workerLabels, func(w workerCounts) float64 { return bit(w.Unread) }),
	gauge("worker_slowness", "Learnt from streams and from the workers' metrics, 1 until there were some. It is the "+
		"larger of two: prefill seconds per estimated second, by prompts with 1,024 uncached tokens or more, which fades "+
		"to 1 in some minutes without such prompts; and the time per output token beside the pool's median, cached or "+
		"not, from 3 times that on.",
		workerLabels, func(w workerCounts) float64 { return w.Slow }),
	gauge("worker_weights_version", "Version of the worker's weights, -1 where it is not known.", workerLabels,
		func(w workerCounts) float64 { return float64(w.Weights) - 1 }),
	gauge("worker_queued_prefill_seconds", "Believed prefill queue.", workerLabels,
		func(w workerCounts) float64 { return w.Wait }),
	gauge("index_blocks", "Blocks believed held.", workerLabels,
		func(w workerCounts) float64 { return float64(w.blocks) }),
}

// ofLMCacheAt has the counts of the LMCache inside of a worker's engine, under their own names, so that dashboards and
// alerts for SageMaker HyperPod find them. It has no values for workers without LMCache.
var ofLMCacheAt = []reading[*worker.LMCache]{
	total("lmcache:num_vllm_hit_tokens_total", "Tokens of prompts that vLLM's own cache held, as the worker's LMCache "+
		"counts.", workerLabels, func(l *worker.LMCache) float64 { return l.EngineHits }),
	total("lmcache:num_lookup_tokens_total", "Tokens that the worker's LMCache was asked for.", workerLabels,
		func(l *worker.LMCache) float64 { return l.Lookups }),
	total("lmcache:num_lookup_hits_total", "Tokens that the worker's LMCache was asked for and had.", workerLabels,
		func(l *worker.LMCache) float64 { return l.LookupHits }),
	total("lmcache:request_cache_hit_rate_sum", "Sum over requests of the share of the prompt that the worker's LMCache "+
		"had, 0 to 1 each.", workerLabels, func(l *worker.LMCache) float64 { return l.RateSum }),
	total("lmcache:request_cache_hit_rate_count", "Requests in lmcache:request_cache_hit_rate_sum.", workerLabels,
		func(l *worker.LMCache) float64 { return l.RateCount }),
}

// poolLabels are the labels of every metric of a pool.
var poolLabels = []string{"pool"}

var ofPools = []reading[*readiness.Pool]{
	gauge("pool_ready", "1 if the pool can serve, as /ready says of it; also of a pool without workers. 0: no worker is "+
		"up, and no request waits for one; or none lists a model that the pool is for, or accepts this router's key.",
		poolLabels,
		func(p *readiness.Pool) float64 { return bit(p.CanServe(time.Now())) }),
	gauge("pool_rests", "1 while no worker is up, and requests wait for one (wait_empty) or at one that is paused, for "+
		"pause_max at most. The pool is ready.", poolLabels,
		func(p *readiness.Pool) float64 { return bit(p.RestsWell(time.Now())) }),
	gauge("pool_keys_shut_out", "Keys with workers of their own (keys.workers) none of which is up: their requests get "+
		"503. warmpath status names them.", poolLabels,
		func(p *readiness.Pool) float64 { return float64(len(p.ShutOut(p.Workers.Stats(time.Now())))) }),
	gauge("pool_workers_outside", "Workers of the pool that this router does not use: they are outside of its subset.",
		poolLabels, func(p *readiness.Pool) float64 { return float64(p.Outside) }),
	gauge("queue_limited", "Of the requests that wait in the router, those that wait for a limit of their key.",
		poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.Queue.ForLimit()) }),
	gauge("index_nodes", "Nodes of the prefix index.", poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.Index.Stats().Nodes) }),
	gauge("shared_kv_tokens", "Tokens of KV that the tier shared by the pool's workers is taken to hold: as "+
		"configured, or by what is put into the KV cache of this process.", poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.SharedTokens()) }),
	gauge("prefill_transfer_tokens_per_second", "Tokens of KV a second that come from prefillers, as learnt from the "+
		"first bytes of streams, with the request's own way in it; 0 = not known.", poolLabels,
		func(p *readiness.Pool) float64 { return p.TransferRate(time.Now()) }),
	total("panic_requests_total", "Requests sent to a worker that is not up, as none was.", poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.Workers.Counts().Panics) }),
	total("retries_denied_total", "Repeats that the retry budget refused.", poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.Workers.Counts().RetriesRefused) }),
	newReading(metric{name: "conversation_moves_total", help: "Conversations that were to move to another worker, " +
		"as theirs leaves or another one has come, by result: moved, failed, used (it moved, and the new worker answered " +
		"its next turn).",
		kind: isCounter, labels: []string{"pool", "result"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			c := p.Book.Counts()
			send(float64(c.Moved), "moved")
			send(float64(c.Failed), "failed")
			send(float64(c.Used), "used")
		}),
	newReading(metric{name: "conversation_move_tokens_total", help: "Tokens of the prompts that were moved, of " +
		"those of them that came from the tier that the workers share, and of those of which the next turn came.",
		kind: isCounter, labels: []string{"pool", "result"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			c := p.Book.Counts()
			send(float64(c.TokensMoved), "moved")
			send(float64(c.TokensLoaded), "loaded")
			send(float64(c.TokensUsed), "used")
		}),
	newReading(metric{name: "conversation_move_bytes_total", help: "Bytes of the KV of these tokens (moved, used), of " +
		"models for which what LMCache puts into this process's KV cache shows a token's bytes.", kind: isCounter,
		labels: []string{"pool", "result"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			if c := p.Book.Counts(); c.BytesMoved > 0 || c.TokensMoved == 0 {
				send(float64(c.BytesMoved), "moved")
				send(float64(c.BytesUsed), "used")
			}
		}),
	newReading(metric{name: "conversation_move_seconds_total", help: "Time that the requests of moves took, by way: " +
		"store (the worker that has a conversation writes it to the tier), load (another one reads it there), compute.",
		kind: isCounter, labels: []string{"pool", "way"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			c := p.Book.Counts()
			c.EachWay(func(way string, took time.Duration) { send(took.Seconds(), way) })
		}),
	newReading(metric{name: "cache_wishes_total", help: "What strategies asked to be done with KV caches, by result: " +
		"refused (no such conversation, or too many wait), done, failed.", kind: isCounter,
		labels: []string{"pool", "result"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			c := p.Book.Counts()
			for i, result := range [...]string{"refused", "done", "failed"} {
				send(float64(c.Wishes[i]), result)
			}
		}),
	gauge("conversation_bytes", "Memory that the last requests of conversations take (hand_over_bytes).", poolLabels,
		func(p *readiness.Pool) float64 { return float64(p.Book.Counts().Bytes) }),
	newReading(metric{name: "session_events_total", help: "What happened to session bindings.", kind: isCounter,
		labels: []string{"pool", "kind", "event"}},
		func(p *readiness.Pool, send func(float64, ...string)) {
			c := p.Sessions.Counts()
			for _, k := range [...]session.Kind{session.Opened, session.Key, session.Response} {
				send(float64(c.Opened[k]), k.String(), "opened")
				send(float64(c.Used[k]), k.String(), "used")
				send(float64(c.Closed[k]), k.String(), "closed")
				send(float64(c.Lost[k]), k.String(), "lost")
				send(float64(c.Rebound[k]), k.String(), "rebound")
			}
		}),
}

// strategyCounts holds the readings of a pool's strategy.
type strategyCounts struct {
	host.Stats
	sha256 string
}

// strategyLabels are the labels of every metric of a strategy.
var strategyLabels = []string{"pool", "strategy"}

var ofStrategies = []reading[strategyCounts]{
	total("module_traps_total", "Instances discarded after an error.", strategyLabels,
		func(s strategyCounts) float64 { return float64(s.Discarded) }),
	gauge("module_instances", "Live instances, which strategies of the same module and settings share.", strategyLabels,
		func(s strategyCounts) float64 { return float64(s.Instances) }),
	gauge("module_quarantined", "1 while the module is set aside after repeated errors.", strategyLabels,
		func(s strategyCounts) float64 { return bit(s.Quarantined) }),
	newReading(metric{name: "module_info", help: "The module that serves; always 1.", kind: isGauge,
		labels: []string{"pool", "strategy", "sha256"}},
		func(s strategyCounts, send func(float64, ...string)) { send(1, s.sha256) }),
	newReading(metric{name: "strategy_metric", help: "What a module counts by sdk.Metric, 64 names at most; from 0 " +
		"again when another module is loaded.", kind: isGauge, labels: []string{"pool", "strategy", "name"}},
		func(s strategyCounts, send func(float64, ...string)) {
			for name, value := range s.Metrics {
				send(value, name)
			}
		}),
}
