// Package vllmsim is a simulated vLLM worker, seen over HTTP like a real one.
//
// A router cannot be judged against an echo server: what it must get right is where a prompt is cached, what that cache
// evicts and how long a queue makes others wait. A real vLLM needs a GPU, or a minute of start and gigabytes a worker
// on a CPU. So this package speaks vLLM 0.32.0's HTTP in front of package engine, which computes what vLLM would do and
// how long it would take. Tests compare it with recordings of the real one in testdata/vllm:
// TestPlainWireMatchesRecording, TestStreamWireMatchesRecording, TestErrorsMatchRecording, TestMetricsMatchRecording.
//
// # Which type does what
//
//	Server     listener, connections, death and revival; it outlives its process
//	process    what dies with a worker: engine, stored responses, sessions, routes
//	*API       one for each group of endpoints: reads bodies, refuses, answers
//	inference  runs what was read through the engine, and answers plain or as a stream
//	form       the shape of an answer: chat and completions, responses, messages
//	ranks      the engines of a worker, one for each data-parallel rank, and the balance among them
//	driver     runs an engine by the wall clock; the one goroutine, timer and lock of a rank
//	events     a package: publishes what the engines' caches hold
//	lmworker   a package: reports the CPU tier to LMCache's controller
//
// # Rules
//
//   - The engine reads no clock. clock.go turns wall time into its time, Speed times as fast, and stops it in a stall.
//   - Time is simulated: a step's end is computed, not waited for. A late wake-up catches up step by step, so 20 times
//     real time changes no decision, only the moment at which tokens are shown: TestSpeedChangesNoDecision. At Speed
//     above 1 the driver wakes for first tokens, ends and otherwise every 10 ms, and an event then carries several
//     tokens, as it may in vLLM.
//   - The histograms of /metrics and the seconds of /sim/stats are simulated time, at any Speed.
//   - Replies follow from prompt, salt and seed. A stated max_tokens is used up (finish_reason length). Without one a
//     chat reply has ReplyTokens on average and ends with <|end|> (stop). ignore_eos makes it run to the model's
//     length. Completions default to 16 tokens, as in vLLM.
//
// # Faults
//
// POST /sim/fault or SetFault make a worker fail; Kill and Restart end and revive it. fault.go lists the modes. Drain
// is as recorded from 0.32.0: only the answers show it, not /health.
//
// # Why
//
// why.md has the chat template, the endpoints, sessions, tiers and streams for load tests in detail, what was left out,
// and what was tried and lost.
package vllmsim
