// Package vllmsim is a simulated vLLM worker, as real as the wire can show.
//
// A router cannot be judged against an echo server: what it must get right is where a prompt is cached, what that
// cache evicts and how long a queue makes others wait. A real vLLM needs a GPU, or a minute of start and gigabytes a
// worker on a CPU. So this room speaks vLLM 0.32.0's HTTP in front of package engine, which computes what vLLM would
// do and how long it would take. Recordings of the real one in testdata/vllm hold the wire to that:
// TestPlainWireMatchesRecording, TestStreamWireMatchesRecording, TestErrorsMatchRecording, TestMetricsMatchRecording.
//
// # How the room lies
//
//	Server     listener, connections, death and revival; it outlives its process
//	process    what dies with a worker: engine, stored responses, sessions, routes
//	*API       one for each group of endpoints: reads bodies, refuses, answers
//	inference  runs what was read through the engine, and answers plain or as a stream
//	form       the shape of an answer: chat and completions, responses, messages
//	ranks      the engines of a worker, one for each data-parallel rank, and the balance among them
//	driver     runs an engine by the wall clock; the one goroutine, timer and lock of a rank
//	events     a room: publishes what the engines' caches hold
//	lmworker   a room: reports the CPU tier to LMCache's controller
//
// # Rules
//
//   - The engine knows no clock. clock.go turns wall time into its time, Speed times as fast, and stands still in a
//     stall.
//   - Time is simulated: a step's end is computed, not waited for. A late wake-up catches up step by step, so 20 times
//     real time changes no decision, only the moment at which tokens are shown: TestSpeedChangesNoDecision. At Speed
//     above 1 the driver wakes for first tokens, ends and otherwise every 10 ms, and an event then carries several
//     tokens, as it may in vLLM.
//   - The histograms of /metrics and the seconds of /sim/stats are simulated time, at any Speed.
//   - Replies follow from prompt, salt and seed. A stated max_tokens is used up (finish_reason length). Without one a
//     chat reply has ReplyTokens on average and ends with <|end|> (stop). ignore_eos makes it run to the model's
//     length. Completions default to 16 tokens, as in vLLM.
//
// # Chat template
//
//	<|tools|> JSON <|end|>   <|role|> content [<|calls|> JSON] <|end|> ...   <|assistant|>
//
// Each <|...|> is one token and each message content is a text of its own. A chat of m messages is therefore the
// tokens of the contents, plus MessageTokens*m, plus GenerationTokens. Specials in a prompt's text are plain text,
// where vLLM's tokenizers would let a user forge a role.
//
// # Endpoints
//
// Chat, completions, responses and messages go through the engine. The worker answers /v1/embeddings, /pooling,
// /classify, /rerank, /score, audio and images at once. A real one has the endpoints of its model's kind only, and
// 404 for the rest. /v1/responses keeps its answers as with VLLM_ENABLE_RESPONSES_API_STORE=1, so that
// previous_response_id, GET and cancel find them on the worker that made them and nowhere else. vLLM has neither
// DELETE (405) nor input_items (404).
//
// A reply calls a tool if tool_choice demands one, or leaves it free and the last user message contains "use the tool".
// Its arguments, as the text of a json_schema answer, are the least that fits the schema: the same at each call.
//
// # Sessions
//
// With Config.Sessions /invocations opens and closes SageMaker's sessions as vLLM does, its oddities included: an
// expired session is removed when it is named, and that one request is let in. /v1 paths ignore the field.
//
// A session may have a payload, as a multimodal model's: {"requestType":"open_session", ...} with a body of any
// length. The requestType must stand in its first 4 KiB. The answer carries the id under the other of the two names
// that workers use. Every prompt that names the session then begins with tokens that stand for the payload, so that
// it shows in usage and in the cache; close_session or CLOSE frees it. A payload is counted and hashed as it comes,
// never held: a test asks whether every byte arrived, once (sha256 in the answer, session_bytes in /sim/stats).
// Sessions die with the worker; vLLM's are files, and outlive its process where the disk does.
//
// # Faults
//
// POST /sim/fault or SetFault make a worker fail; Kill and Restart end and revive it. fault.go lists the modes. Drain
// is as recorded from 0.32.0: only the answers show it, not /health.
//
// # KV events
//
// A rank publishes its caches as vLLM does: one message for each step that changed something, before the tokens of that
// step are shown. TestEventsAreTheCaches reads them through every fault of events and compares with the caches, and
// TestBelievedIsCached has the router's own subscriber and index believe what the answers then report as cached. As in
// vLLM a reset is reported with the next step, and a restart by nothing but the sequence that begins at 0 again.
//
// # Data-parallel ranks
//
// Config.DataParallel engines stand behind one port. X-data-parallel-rank names one, else the least loaded takes the
// request, by vLLM's rule. All prompts and choices of a request run on one rank, where vLLM balances each by itself.
//
// # Tiers
//
// CPUTokens is a tier of each rank, Shared one of many workers. What is loaded from there counts in cached_tokens and
// in the external_prefix_cache metrics, and a request that loads is a waiting one of reason deferred. The CPU tier is
// vLLM's native offloading, whose stores are in the KV events with medium CPU, or with Config.LMCache that of LMCache,
// which reports to its controller instead: TestControllerKnowsTheTier plays it against the router's own. No event
// reports a shared tier.
//
// # Load tests
//
// X-Sim-Tokens and X-Sim-Interval get a stream without an engine, for what stands in front of the worker: through the
// engine the caller could not choose the times. net/http's two goroutines and two buffers a connection are most of what
// such a stream costs.
//
// # What lost
//
// A sleep for each token, the obvious form, would be 160,000 wake-ups a second for 100 streams at 20 times real time.
//
// LoRA, logprobs, stop strings, the render of responses, sleep and pause are left out, and metrics that no router
// reads. The worker answers as with --enable-prompt-tokens-details and --enable-auto-tool-choice.
package vllmsim
