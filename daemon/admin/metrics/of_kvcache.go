package metrics

import "github.com/warmpath/warmpath/daemon/kv/kvcache"

// ofKVCache has no values where the KV cache has no listener.
var ofKVCache = []reading[kvcache.Stats]{
	newReading(metric{name: "kv_gets_total",
		help: "Reads of the workers' KV cache by outcome: hit in memory (l1), on " +
			"the disk (spill), at the servers behind it (l2), miss.", kind: isCounter, labels: []string{"tier", "result"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			send(float64(s.Store.Hits), "l1", "hit")
			send(float64(s.Store.FromDisk), "spill", "hit")
			send(float64(s.Store.FromFar), "l2", "hit")
			send(float64(s.Store.Misses), "all", "miss")
		}),
	newReading(metric{name: "kv_bytes_total",
		help: "Bytes of values put into the KV cache and read from it.", kind: isCounter,
		labels: []string{"direction"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			send(float64(s.Store.BytesWritten), "put")
			send(float64(s.Store.BytesRead), "get")
		}),
	total("kv_puts_total", "Values put into the KV cache.", nil,
		func(s kvcache.Stats) float64 { return float64(s.Store.Puts) }),
	newReading(metric{name: "kv_refused_total",
		help: "Values that the KV cache refused: too large, a key too long, or all that is left is being read or promised " +
			"(full), or clients are sending as much as half of it (writing).", kind: isCounter, labels: []string{"reason"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			for reason, n := range s.Store.Refused {
				send(float64(n), reason)
			}
		}),
	newReading(metric{name: "kv_evictions_total",
		help: "Values that left the KV cache before their time was over.",
		kind: isCounter, labels: inTier},
		func(s kvcache.Stats, send func(float64, ...string)) { send(float64(s.Store.Evictions), "l1") }),
	total("kv_expirations_total", "Values of the KV cache whose time was over.", nil,
		func(s kvcache.Stats) float64 { return float64(s.Store.Expirations) }),
	newReading(metric{name: "kv_bytes",
		help: "Bytes of the KV cache: values that can be read (values), their room with what " +
			"rounding costs (reserved), keys and records (records), all room for values (arena).", kind: isGauge,
		labels: []string{"what"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			send(float64(s.Store.ValueBytes), "values")
			send(float64(s.Store.ReservedBytes), "reserved")
			send(float64(s.Store.RecordBytes), "records")
			send(float64(s.Store.ArenaBytes), "arena")
		}),
	gauge("kv_values", "Values in the KV cache.", nil, func(s kvcache.Stats) float64 { return float64(s.Store.Entries) }),
	total("kv_load_errors_total", "Reads of values behind the memory that failed: the disk, or a server of l2.", nil,
		func(s kvcache.Stats) float64 { return float64(s.Store.LoadErrors) }),
	gauge("kv_tokens", "Tokens of KV that the KV cache has room for, by what is put; 0 = not known yet.", nil,
		func(s kvcache.Stats) float64 { return float64(s.Tokens.Tokens) }),
	newReading(metric{name: "kv_token_bytes",
		help: "Bytes of a token of a model's KV, all ranks and layers, by what is put into the KV cache.", kind: isGauge,
		labels: []string{"model"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			for _, m := range s.Tokens.Models {
				send(m.BytesPerToken, m.Name)
			}
		}),
	newReading(metric{name: "kv_held",
		help: "Values of the KV cache that cannot make room: being read (leased), promised to " +
			"a client (pinned), being written (filling). wanted: promised, and on their way from l2.",
		kind: isGauge, labels: []string{"why"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			send(float64(s.Store.Leases), "leased")
			send(float64(s.Store.Pins), "pinned")
			send(float64(s.Store.Fillings), "filling")
			send(float64(s.Store.Wanted), "wanted")
		}),
	newReading(metric{name: "kv_door_connections",
		help: "Connections open at a listener of the KV cache.", kind: isGauge,
		labels: inDoor},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.RESP != nil {
				send(float64(s.RESP.Connections), "resp")
			}
			if s.HyperPod != nil {
				send(float64(s.HyperPod.Connections), "hyperpod")
			}
		}),
	newReading(metric{name: "kv_door_requests_total",
		help: "Requests at a listener of the KV cache: answered, or answered an " +
			"error.", kind: isCounter, labels: []string{"door", "result"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.RESP != nil {
				send(float64(s.RESP.Commands-min(s.RESP.Commands, s.RESP.Failed)), "resp", "ok")
				send(float64(s.RESP.Failed), "resp", "error")
			}
			if s.HyperPod != nil {
				send(float64(s.HyperPod.Requests-min(s.HyperPod.Requests, s.HyperPod.Failed)), "hyperpod", "ok")
				send(float64(s.HyperPod.Failed), "hyperpod", "error")
			}
		}),
	newReading(metric{name: "kv_door_lost_total",
		help: "Connections at a listener of the KV cache that were refused as there " +
			"were too many, and clients given up as they stopped in the middle (stalled).", kind: isCounter,
		labels: []string{"door", "why"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.RESP != nil {
				send(float64(s.RESP.Refused), "resp", "refused")
				send(float64(s.RESP.Stalled), "resp", "stalled")
			}
			if s.HyperPod != nil {
				send(float64(s.HyperPod.Stalled), "hyperpod", "stalled")
			}
		}),
	newReading(metric{name: "kv_door_bytes_total",
		help: "Bytes that came in and went out at a listener of the KV cache. leased: values that workers read in shared " +
			"memory.", kind: isCounter, labels: []string{"door", "direction"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.RESP != nil {
				send(float64(s.RESP.BytesIn), "resp", "in")
				send(float64(s.RESP.BytesSent), "resp", "out")
			}
			if s.HyperPod != nil {
				send(float64(s.HyperPod.BytesIn), "hyperpod", "in")
				send(float64(s.HyperPod.BytesLeased), "hyperpod", "leased")
			}
		}),
	newReading(metric{name: "kv_door_gets_total",
		help: "Values that clients asked for at a listener of the KV cache, by outcome: hit, miss.", kind: isCounter,
		labels: []string{"door", "result"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.RESP != nil {
				send(float64(s.RESP.Hits), "resp", "hit")
				send(float64(s.RESP.Misses), "resp", "miss")
			}
			if s.HyperPod != nil {
				send(float64(s.HyperPod.Hits), "hyperpod", "hit")
				send(float64(s.HyperPod.Misses), "hyperpod", "miss")
			}
		}),
	total("kv_promises_broken_total", "Values that EXISTS found and that GET then missed: L2 or the disk had lost them, "+
		"or memory had no room for them.", nil,
		func(s kvcache.Stats) float64 { return float64(s.Store.Broken) }),
	newReading(metric{name: "kv_spill_bytes",
		help: "Bytes of the files of spilled values.", kind: isGauge},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.Spill != nil {
				send(float64(s.Spill.Bytes))
			}
		}),
	newReading(metric{name: "kv_spill_values",
		help: "Values of the KV cache that are on the disk.", kind: isGauge},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.Spill != nil {
				send(float64(s.Spill.Values))
			}
		}),
	newReading(metric{name: "kv_spill_total",
		help: "Values at the disk of the KV cache: written, read, skipped (the disk is slow or full, or the value too " +
			"large; they are offered again before memory evicts them), dropped (the oldest, for room), corrupt (a checksum); " +
			"torn counts files, failure errors of the disk.", kind: isCounter, labels: []string{"event"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.Spill != nil {
				send(float64(s.Spill.Written), "written")
				send(float64(s.Spill.Read), "read")
				send(float64(s.Spill.Skipped), "skipped")
				send(float64(s.Spill.Dropped), "dropped")
				send(float64(s.Spill.Corrupt), "corrupt")
				send(float64(s.Spill.Torn), "torn")
				send(float64(s.Spill.Failures), "failure")
			}
		}),
	newReading(metric{name: "kv_leases_total",
		help: "Leases on values of the KV cache that workers were granted at its HyperPod listener, and those of them that " +
			"were not released in time (expired).", kind: isCounter, labels: []string{"event"}},
		func(s kvcache.Stats, send func(float64, ...string)) {
			if s.HyperPod != nil {
				send(float64(s.HyperPod.Granted), "granted")
				send(float64(s.HyperPod.Expired), "expired")
			}
		}),
}

// inDoor is the label of counts at one listener of the KV cache.
var inDoor = []string{"door"}
