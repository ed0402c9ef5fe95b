package metrics

import (
	"github.com/warmpath/warmpath/cache/kvstore/remote"
)

// ofL2 has no values where the KV cache has no L2.
var ofL2 = []reading[remote.Stats]{
	newReading(metric{name: "kv_l2_gets_total",
		help: "Values that the KV cache asked its L2 for: hit, miss, down (the server was known to be), error (it did not " +
			"answer, or not with the value).", kind: isCounter, labels: []string{"result"}},
		func(s remote.Stats, send func(float64, ...string)) {
			send(float64(s.Hits), "hit")
			send(float64(s.Misses), "miss")
			send(float64(s.GetsDown), "down")
			send(float64(s.GetErrors), "error")
		}),
	newReading(metric{name: "kv_l2_puts_total",
		help: "Values that were to go to the KV cache's L2: written, crowded (too many waited), skipped (the server was " +
			"down, or refused one a moment ago), error (it did not answer); oom, read_only, login and other are what a server " +
			"refuses.",
		kind: isCounter, labels: []string{"result"}},
		func(s remote.Stats, send func(float64, ...string)) {
			send(float64(s.Puts), "written")
			send(float64(s.Crowded), "crowded")
			send(float64(s.Skipped), "skipped")
			send(float64(s.PutErrors), "error")
			for why, n := range s.Refused {
				send(float64(n), why)
			}
		}),
	newReading(metric{name: "kv_l2_bytes_total",
		help: "Bytes of values sent to the KV cache's L2 and got from it.", kind: isCounter, labels: []string{"direction"}},
		func(s remote.Stats, send func(float64, ...string)) {
			send(float64(s.BytesSent), "put")
			send(float64(s.BytesRead), "get")
		}),
	total("kv_l2_promotions_total", "Values from the KV cache's L2 that memory keeps.", nil,
		func(s remote.Stats) float64 { return float64(s.Promotions) }),
	newReading(metric{name: "kv_l2_learned_total",
		help: "Keys of the KV cache's L2 that were asked for in the background (probe), or reported by others (news).",
		kind: isCounter, labels: []string{"from"}},
		func(s remote.Stats, send func(float64, ...string)) {
			send(float64(s.Probes), "probe")
			send(float64(s.Heard), "news")
		}),
	total("kv_l2_undeleted_total", "Deletions that were never sent to the KV cache's L2, as too many waited.", nil,
		func(s remote.Stats) float64 { return float64(s.Undeleted) }),
	total("kv_l2_copied_total", "Values copied once more on their way to or from L2, as they lie in pieces.", nil,
		func(s remote.Stats) float64 { return float64(s.Copied) }),
	gauge("kv_l2_known_keys", "Keys that the KV cache's L2 is known to have.", nil,
		func(s remote.Stats) float64 { return float64(s.Known) }),
	gauge("kv_l2_queue_bytes", "Bytes of values on their way to the KV cache's L2.", nil,
		func(s remote.Stats) float64 { return float64(s.Queued) }),
	newReading(metric{name: "kv_l2_up",
		help: "1 = the server of the KV cache's L2 answers. 0 = it does not: its values are misses.", kind: isGauge,
		labels: inServer},
		func(s remote.Stats, send func(float64, ...string)) {
			for _, n := range s.Servers {
				up := 0.0
				if n.Up {
					up = 1
				}
				send(up, n.Address)
			}
		}),
	newReading(metric{name: "kv_l2_breaker_opens_total",
		help: "How often a server of the KV cache's L2 was found not to answer.", kind: isCounter, labels: inServer},
		func(s remote.Stats, send func(float64, ...string)) {
			for _, n := range s.Servers {
				send(float64(n.Opens), n.Address)
			}
		}),
	newReading(metric{name: "kv_l2_refuses",
		help: "1 = the server of the KV cache's L2 takes no values: oom, read_only, login, other.", kind: isGauge,
		labels: []string{"server", "why"}},
		func(s remote.Stats, send func(float64, ...string)) {
			for _, n := range s.Servers {
				if n.Refuses != "" {
					send(1, n.Address, n.Refuses)
				}
			}
		}),
}

// inServer is the label of counts at one server of the KV cache's L2.
var inServer = []string{"server"}
