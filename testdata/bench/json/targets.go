package main

// target is one figure to print. The names are those of the benchmarks, with the package in front.
type target struct {
	name   string  // as told: package below the module, dot, benchmark without the word Benchmark
	unit   string  // as go test prints it: ns/op, MB/s, B/pair
	over   string  // not empty: the figure is the ratio to this one
	limit  float64 // the target; 0 = none, told for comparison
	atMost bool    // the limit is an upper one
}

func most(name, unit string, limit float64) target {
	return target{name: name, unit: unit, limit: limit, atMost: true}
}

func least(name, unit string, limit float64) target {
	return target{name: name, unit: unit, limit: limit}
}

func ratio(name, over string, limit float64) target {
	return target{name: name, unit: "ns/op", over: over, limit: limit, atMost: true}
}

func plain(name, unit string) target { return target{name: name, unit: unit} }

// targets are those of the design for two cores of a server: the pick by its module, the prefix index, the scanner.
var targets = []target{
	most("testdata/bench/json.Pick/wasm/workers=16", "ns/op", 500),
	most("testdata/bench/json.Pick/wasm/workers=16", "allocs/op", 0),
	most("testdata/bench/json.Pick/wasm/workers=256", "ns/op", 6000),
	most("testdata/bench/json.Pick/wasm/workers=256", "allocs/op", 0),
	most("testdata/bench/json.PickTail", "p99-ns", 2000),
	plain("testdata/bench/json.Pick/idle/workers=16", "ns/op"),
	plain("testdata/bench/json.Pick/idle/workers=256", "ns/op"),
	plain("testdata/bench/json.Pick/native/workers=16", "ns/op"),
	plain("testdata/bench/json.Pick/native/workers=256", "ns/op"),
	ratio("testdata/bench/json.Pick/wasm/workers=16", "testdata/bench/json.Pick/native/workers=16", 5),
	ratio("testdata/bench/json.Pick/wasm/workers=256", "testdata/bench/json.Pick/native/workers=256", 5),
	ratio("host.PickParallel", "host.PickGo/workers=16", 1/1.8), // on two free cores
	most("host.PickAllocating", "B/instance", 8<<20),
	most("host.ColdStart", "ns/op", 800e6),
	most("host.WarmStart", "ns/op", 100e6),
	most("host.TrapToFallback", "ns/op", 100e3),
	most("host.Runaway/loop", "ns/op", 2e6),
	most("host.Runaway/recursion", "ns/op", 2e6),
	most("host.Runaway/flood", "ns/op", 2e6),

	// Each fault of a strategy: its request is answered by the fallback.
	most("host.Fault/loop", "p50-ns", 5e6),
	most("host.Fault/recursion", "p50-ns", 5e6),
	most("host.Fault/stack", "p50-ns", 5e6),
	most("host.Fault/grow", "p50-ns", 5e6),
	most("host.Fault/flood", "p50-ns", 5e6),
	most("host.Fault/denormals", "p50-ns", 5e6),
	most("host.Fault/branches", "p50-ns", 5e6),
	most("host.Fault/chase", "p50-ns", 5e6),
	most("host.Fault/straight", "p50-ns", 5e6),
	most("host.Fault/sqrt", "p50-ns", 5e6),
	most("host.Fault/indirect", "p50-ns", 5e6),
	most("host.Fault/trap", "p50-ns", 5e6),
	most("host.Fault/pointers", "p50-ns", 5e6),
	most("host.Fault/order", "p50-ns", 5e6),
	most("host.Fault/index", "p50-ns", 5e6),
	most("host.Fault/hostcalls", "p50-ns", 5e6),
	most("host.Fault/kvs", "p50-ns", 5e6),
	most("host.Fault/logs", "p50-ns", 5e6),
	most("host.Fault/frame_shrinks", "p50-ns", 5e6),

	most("testdata/bench/json.KV/get", "ns/call", 600),
	most("testdata/bench/json.KV/cas", "ns/call", 1600),
	least("host.Notices", "callbacks/s", 100e3),
	ratio("daemon.Shadow/beside", "daemon.Shadow/alone", 1.05), // of a whole request

	most("cache/prefix.Lookup/8k", "ns/op", 600),
	most("cache/prefix.Lookup/64k", "ns/op", 600),
	most("cache/prefix.Lookup256Workers", "ns/op", 1000),
	most("cache/prefix.Insert/8k", "ns/op", 2000),
	most("cache/prefix.Insert/64k", "ns/op", 2000),
	most("cache/prefix.InsertCold/8k", "ns/op", 2000),
	most("cache/prefix.InsertCold/64k", "ns/op", 2000),
	least("testdata/bench/json.FromText/8k", "prompts/s", 200e3),
	least("testdata/bench/json.FromText/64k", "prompts/s", 30e3),
	most("cache/prefix.BytesPerPair", "B/pair", 16),
	most("cache/prefix.BytesPerPair", "B/pair-left", 1),
	least("cache/prefix.LookupBesideInserts", "lookups/s", 1.5e6),
	least("cache/prefix.LookupBesideInserts", "inserts/s", 1e6),

	least("cache/kvevents.Decode/form=array", "ev/s", 600e3),
	least("cache/kvevents.Decode/form=map", "ev/s", 400e3),
	least("daemon/fleet/feed.PubToIndex", "msg/s", 100e3),
	least("cache/holdings.Events/prompts", "stored/s", 8e6),
	least("cache/holdings.Events/prompts", "removed/s", 8e6),
	least("cache/holdings.Events/single", "stored/s", 4e6),
	least("cache/holdings.Events/single", "removed/s", 4e6),
	most("cache/holdings.BytesPerPair", "B/pair", 48),
	most("cache/holdings.BytesPerPair", "B/pair-left", 1),
	most("cache/holdings.Lookup/8k", "ns/op", 600),
	most("cache/holdings.Lookup/64k", "ns/op", 600),
	most("cache/holdings.Lookup/64k", "allocs/op", 0),
	most("cache/holdings.Lookup256Workers", "ns/op", 1500),
	most("cache/holdings.LookupBesideEvents", "ns/op", 1500),
	plain("cache/holdings.LookupBesideEvents", "blocks/s"),
	most("cache/holdings.LookupBesideFleet", "ns/op", 1500),
	plain("cache/holdings.LookupBesideFleet", "blocks/s"),
	plain("cache/holdings.Hash/8k", "ns/op"),
	plain("cache/holdings.Hash/64k", "ns/op"),

	most("cache/kvstore/catalog.Put", "ns/op", 2000),
	most("cache/kvstore/catalog.Page/after_100000", "ns/op", 500e3),
	most("cache/kvstore/chunks.Put", "ns/op", 1000),

	least("daemon/request/prompt.Scan256KB", "MB/s", 4000),
	most("daemon/request/prompt.ScanHash256KB", "ns/op", 200e3),

	most("daemon/request/tokens.Hit/8k", "ns/op", 50e3),
	most("daemon/request/tokens.Hit/64k", "ns/op", 400e3),

	most("daemon/peers.Tell", "ns/op", 5e3), // a request in all, of 200 blocks: what it adds at the router that serves it
	most("daemon/peers.Hear", "ns/op", 15e3),
}
