package metrics

import "github.com/prometheus/client_golang/prometheus"

// Counters and histograms of requests.
var (
	requests = newCounter("requests_total", "Requests answered, each once, as in the access log. code is the status, but "+
		"for a stream that did not end well, which has the status 200 there: 499 if the client left it, 502 if the worker "+
		"broke it off. worker is the one that answered, or else the last that was tried. pool, strategy, model and worker "+
		"are empty where a request was answered before they were known.",
		"pool", "strategy", "model", "worker", "code")
	duration = newHistogram("request_duration_seconds", "Arrival to the end of the answer, of requests whose body was "+
		"read for a pool.", secondBuckets, "pool", "strategy")
	ttft = newHistogram("ttft_seconds", "Arrival to the first output of a successful answer. stream=\"false\" is an "+
		"answer in one piece: its first byte comes when all of it has been generated.",
		secondBuckets, "pool", "strategy", "worker", "stream")
	itl = newHistogram("itl_seconds", "Mean time between two output tokens of a stream, one observation a stream whose "+
		"worker counted its tokens (stream_options.include_usage).", itlBuckets, "pool", "strategy", "worker")
	pickTime  = newHistogram("pick_seconds", "Time a strategy took to choose.", pickBuckets, "pool", "strategy")
	pickFuel  = newHistogram("pick_fuel", "Fuel a strategy used to choose.", fuelBuckets, "pool", "strategy")
	fallbacks = newCounter("fallback_total", "Requests whose worker was chosen by the fallback, or that got 503 in "+
		"its place (on_failure).",
		"pool", "strategy", "reason")
	blocks  = newCounter("prefix_blocks_total", "Blocks of the prompts routed.", "pool")
	matched = newCounter("prefix_matched_blocks_total", "Leading blocks believed to be held by the worker that was "+
		"chosen.", "pool", "tier")
	retries  = newCounter("retries_total", "Requests sent on to the next worker before the first byte.", "pool", "reason")
	prefills = newCounter("prefills_total", "Prompts that were to be computed by a worker of their own (disaggregation), "+
		"by what became of that. done: a prefiller did it. freed: it did, and the client left, or the decoder failed or "+
		"refused the request, so that the KV was read for nobody; pinned: likewise, and the KV stays at the prefiller until "+
		"that gives up; both count beside done if a decoder had been told. Of all others the worker that answered did "+
		"it, of refused as a prefiller found fault with the request, of lost when it could not load what the prefiller had "+
		"done, which counts as done too, of long_body as the body is above server.buffer_body_bytes, however long the "+
		"prompt is. dropped: the client left, and the prefill was ended.",
		"pool", "result")
	continuations = newCounter("continuations_total", "Streams that their worker broke off, in pools with continue, by "+
		"what became of them. done: another worker went on, and the answer came to its end. Of all others the client got "+
		"an error: not_eligible, as the answer is none that can be continued; no_worker, as none took it; lethal, as the "+
		"request has ended two engines; mismatch, as the other worker did not go on with the text; broken, as that one "+
		"broke off too. client_gone: the client left meanwhile.", "pool", "result")
	kvHints = newCounter("kv_hints_total", "Answered requests, in pools with kv_hints = \"fetch\", of whose prompt "+
		"another worker held more, by result. dearer: the worker was not told, as the copy would have taken as long as "+
		"the prefill. Of all others it was told where to copy from: fetched, as its engine counts most of that as cached; "+
		"missed, as it does not; unknown, as it names no such count.", "pool", "result")
	modelFallbacks = newCounter("model_fallbacks_total", "Requests that went from a model to its fallback ([[models]] "+
		"fallback), by why: down, full, context.", "model", "to", "reason")
	adapterCalls = newCounter("adapter_calls_total", "Calls to workers to load a LoRA adapter that a request asks for, "+
		"and to unload one that makes room ([pools.adapters]), by result: ok, refused (it is not there, or does not fit), "+
		"failed.", "pool", "call", "result")
	foreign = newCounter("foreign_answers_total", "Answers of a worker, or events of a stream, whose id is not that of "+
		"the request for which they came. No client got them.", "pool", "worker")
	shed = newCounter("shed_total", "Load that was turned away: requests above a limit of the router (overloaded) or "+
		"of all workers of a pool (workers_full), long bodies above a client's part of overflow_bytes (overflow_full), "+
		"packed ones above its part of the decoders' memory (unpacking_full), and repeats above a pool's retry_budget.",
		"pool", "reason")
	tokens = newCounter("tokens_total", "Requests under a strategy that wants the token ids of their prompts, by what "+
		"became of that. given, cached, extended and asked brought ids; the others are routed by their text.",
		"pool", "outcome")
	sessionRefusals = newCounter("session_refusals_total", "Requests refused for their session.", "pool", "reason")
)

// Seconds: 1 ms to 17 min by factors of 2; 0.5 ms to 8 s for the time between tokens; and 100 ns to 13 ms for picks.
var (
	itlBuckets    = prometheus.ExponentialBuckets(0.0005, 2, 15)
	secondBuckets = prometheus.ExponentialBuckets(0.001, 2, 21)
	pickBuckets   = prometheus.ExponentialBuckets(1e-7, 2, 18)
	fuelBuckets   = prometheus.ExponentialBuckets(16, 4, 9)
)
