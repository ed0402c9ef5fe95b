package metrics

import (
	"runtime"
	"strings"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/front"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// processCounts holds the readings of the process itself.
type processCounts struct {
	version  string
	reloaded bool // the configuration in force is the file's
}

var ofProcess = []reading[processCounts]{
	gauge("config_last_reload_successful", "1 if the configuration in force is the file's.", nil,
		func(p processCounts) float64 { return bit(p.reloaded) }),
	newReading(metric{name: "build_info", help: "The binary that runs; always 1.", kind: isGauge,
		labels: []string{"version", "go_version", "os", "arch"}},
		func(p processCounts, send func(float64, ...string)) {
			send(1, p.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		}),
}

var ofClients = []reading[front.Stats]{
	gauge("requests_in_flight", "Clients' requests being served.", nil,
		func(c front.Stats) float64 { return float64(c.InFlight) }),
	gauge("websockets_open", "WebSockets of clients that a worker has accepted, also counted as requests being served.",
		nil, func(c front.Stats) float64 { return float64(c.Sockets) }),
	total("access_log_lost_lines_total", "Lines of the access log that could not be written: its disk was full, or its "+
		"disk or its reader was stuck.", nil, func(c front.Stats) float64 { return float64(c.LostLines) }),
	gauge("client_connections", "Clients' connections open.", nil,
		func(c front.Stats) float64 { return float64(c.Connections.Open) }),
	newReading(metric{name: "client_connections_total", help: "Clients' connections by what became of them.",
		kind: isCounter, labels: []string{"event"}},
		func(c front.Stats, send func(float64, ...string)) {
			send(float64(c.Connections.Accepted), "accepted")
			send(float64(c.Connections.Refused), "refused")
			send(float64(c.Connections.Gone), "left_early")
			send(float64(c.Connections.SlowClosed), "too_slow")
		}),
	gauge("accounts_open", "Requests whose work has not ended, also of clients that have left.", nil,
		func(c front.Stats) float64 { return float64(c.Held.Open) }),
	total("account_leaks_total", "Requests that ended while they still held something: a fault of this router.", nil,
		func(c front.Stats) float64 { return float64(c.Held.Leaks) }),
	newReading(metric{name: "held", help: "What the requests under way hold: places at workers and in queues, prefills " +
		"at workers of their own and their bytes, adapters in use, bytes of answers that slow clients have not taken yet, " +
		"jobs that run after their request was answered.",
		kind: isGauge, labels: []string{"what"}},
		func(c front.Stats, send func(float64, ...string)) {
			for what, n := range c.Held.Held {
				send(float64(n), account.What(what).String())
			}
		}),
}

// ofSpans has no values while tracing is off.
var ofSpans = []reading[tracing.Stats]{
	newReading(metric{name: "spans_total", help: "Sampled requests' spans by what became of them: sent, failed (the " +
		"collector was unreachable or refused them), dropped (too many waited).", kind: isCounter,
		labels: []string{"result"}},
		func(s tracing.Stats, send func(float64, ...string)) {
			send(float64(s.Sent), "sent")
			send(float64(s.Failed), "failed")
			send(float64(s.Full), "dropped")
		}),
	gauge("spans_waiting", "Spans that wait for the collector, 2,048 at most.", nil,
		func(s tracing.Stats) float64 { return float64(s.Waiting) }),
}

// inTier is the label of counts in one tier of the store.
var inTier = []string{"tier"}

var ofStore = []reading[tier.Stats]{
	newReading(metric{name: "sessions", help: "Session bindings in this router's memory.", kind: isGauge,
		labels: []string{"pool", "kind"}},
		func(s tier.Stats, send func(float64, ...string)) {
			for namespace, n := range s.Namespaces {
				if rest, ok := strings.CutPrefix(namespace, session.Namespaces); ok {
					kind, pool, _ := strings.Cut(rest, "/")
					send(float64(n.Entries), pool, kind)
				}
			}
		}),
	newReading(metric{name: "cache_gets_total", help: "Reads of the router's own store.", kind: isCounter,
		labels: []string{"tier", "result"}},
		func(s tier.Stats, send func(float64, ...string)) {
			send(float64(s.L1Hits), "l1", "hit")
			send(float64(s.L2Hits), "l2", "hit")
			send(float64(s.Misses), "all", "miss")
		}),
	newReading(metric{name: "cache_bytes", help: "Bytes in the router's own store, with keys and overhead.", kind: isGauge,
		labels: inTier},
		func(s tier.Stats, send func(float64, ...string)) { send(float64(s.Bytes), "l1") }),
	newReading(metric{name: "cache_evictions_total", help: "Values that made room for others before their time.",
		kind: isCounter, labels: inTier},
		func(s tier.Stats, send func(float64, ...string)) { send(float64(s.Evictions), "l1") }),
	newReading(metric{name: "cache_expirations_total", help: "Values whose time was over.", kind: isCounter,
		labels: inTier},
		func(s tier.Stats, send func(float64, ...string)) { send(float64(s.Expirations), "l1") }),
	total("cache_refused_total", "Values that the store refused.", nil,
		func(s tier.Stats) float64 { return float64(s.Refused) }),
}

// ofRedis has no values where no Redis is configured.
var ofRedis = []reading[tier.L2Stats]{
	gauge("cache_l2_up", "1 while Redis answers in time; absent without Redis.", nil,
		func(s tier.L2Stats) float64 { return bit(!s.Open) }),
	newReading(metric{name: "cache_l2_calls_total", help: "Calls of Redis by outcome: ok, failed. Slow ones are counted " +
		"again.", kind: isCounter, labels: []string{"result"}},
		func(s tier.L2Stats, send func(float64, ...string)) {
			send(float64(s.Calls-min(s.Calls, s.Failures)), "ok")
			send(float64(s.Failures), "failed")
			send(float64(s.Slow), "slow")
		}),
	gauge("cache_l2_owing", "Changes that Redis has not got yet.", nil,
		func(s tier.L2Stats) float64 { return float64(s.Owing) }),
	total("cache_l2_lost_total", "Such changes that were given up.", nil,
		func(s tier.L2Stats) float64 { return float64(s.Lost) }),
}
