// Package replay plays a recorded trace of requests against a running daemon over HTTP, once for each model name, and
// reports what the routing was worth: block hit rate, time to first token, and how evenly the prefill work was spread
// over the workers. It is what `warmpath replay` runs.
//
// # What is sent
//
// A trace line states when a request came, how long its prompt and answer were,
// and which 512-token blocks the prompt was made of. The text itself was never
// published. Each block id therefore becomes 512 tokens of made-up text, the
// same for the same id, so that two prompts share exactly the prefix that they
// shared in the recording. The simulated worker's tokenizer makes one token of
// every 4 bytes ([Config].BytesPerToken), so 512 tokens are 2,048 bytes and
// the count is exact. Each model name has text of its own: vLLM's served names
// are aliases of one cache, and where two pools shared their workers, the
// second run found .999 of its prompts left there by the first.
//
// The prompt goes to /v1/completions as one string. Chat was the alternative,
// and lost: its template adds tokens of its own, so that neither the length of
// a prompt nor the edges of its blocks would be those of the trace. Token ids
// would be exact too, but five times the bytes, and they pass by the router's
// text scanner, which is what real clients exercise.
//
// Block text is made while the request is written, never kept: a block costs
// less than a microsecond (BenchmarkBlockText), where a table of the ids of a
// half hour's trace would hold 200 MB.
//
// # When it is sent
//
// Arrivals are an open loop: a request leaves at its time in the trace, divided by the speed, whether or not earlier
// ones were answered. A closed loop would slow down with the daemon, and make the slower strategy look better. One
// bound breaks the rule, [Config].MaxInFlight, as sockets are finite. A run that reached it reports for how many
// requests, since its times are then understated.
//
// Sessions are the exception: an agent's next request cannot come before the answer that it builds upon. Where the
// trace names sessions, a request waits for the end of the answer before it in its own, and for the delay that the
// trace gives from there. Its header X-Session-Id names the session, as agents do.
//
// # What is measured
//
// Times are in trace time: wall time multiplied by the speed, from the moment the client sends to the first event that
// carries output. Simulated workers must run at the same speed. Hits are those that the worker reports in its usage, in
// whole KV blocks of 16 tokens: what it really did not compute, not what the router believed. Prefill work is computed
// here from the tokens that were not cached, with the router's cost model (see [PrefillSeconds]), and counted for the
// worker named by the header X-Warmpath-Worker, which the daemon sends when X-Warmpath-Explain: 1 is asked for.
//
// # Why the client is so simple
//
// It shares a small machine with the daemon and the workers that it measures.
// Half an hour of conversation holds two million events. Decoding each as JSON
// would cost ten times what it costs to search the stream line by line for three
// words (BenchmarkReadStream), so only one line per request is decoded.
//
// The bar is github.com/schollz/progressbar: it knows terminal widths and
// erases itself. x/term, which it brings along, reports whether there is a
// terminal. Without one, plain lines appear every ten seconds.
package replay
