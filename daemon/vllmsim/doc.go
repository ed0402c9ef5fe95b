// Package vllmsim is a simulated vLLM worker, as real as the wire can show.
//
// A router cannot be judged against an echo server: what it must get right is where a prompt is cached, what that cache
// evicts and how long a queue makes others wait. A real vLLM needs a GPU, or 70 s of start and 3 GB a worker on a CPU. So
// this room computes what vLLM would do (paged KV cache, prefix caching, scheduler) and how long it would take, and
// speaks vLLM 0.32.0's HTTP; recordings of the real one in testdata/vllm hold it to that. Sixteen workers at twenty times
// real time, given 100 requests of 60 KB a second, take a third of a core, the client that sends them included: a sixth of
// that each for encoding/json, for the writes of the streams and for the engines.
//
// # Tokenizer
//
// Every 4 bytes of UTF-8 text are a token, the last of a text may be shorter; each message content is a text of its own. Ids
// are reversible (see tokens.go), so token-id prompts and text prompts meet in the cache. The chat template is
//
//	<|tools|> JSON <|end|>   <|role|> content [<|calls|> JSON] <|end|> ...   <|assistant|>
//
// where each <|...|> is one token. A chat of m messages is therefore the tokens of the contents, plus MessageTokens*m, plus
// GenerationTokens. TextOfTokens makes a text of an exact number of tokens. A reply is pseudo-words of 4 bytes a token, a
// function of prompt, salt and seed: sent back in the next turn it is the same tokens, and so cached.
//
// A stated max_tokens is used up (finish_reason length). Without one a chat reply has ReplyTokens on average and ends with
// <|end|> (stop); ignore_eos makes it run to the model's length; completions default to 16 tokens, as in vLLM.
//
// # Engine
//
// scheduler.go follows vLLM's: a budget of tokens a step, running sequences first and in order, chunked prefill, admission
// while blocks last, preemption of the last. blocks.go follows its BlockPool. timemodel.go says how long a step takes.
//
// One goroutine and one timer a worker. Time is simulated: a step's end is computed, not waited for, and a late wake-up
// catches up step by step, so 20 times real time changes no decision, only the moment at which tokens are shown. A sleep
// for each token (the obvious form) would be 160,000 wake-ups a second for 100 streams at that speed. At Speed above 1 the
// engine wakes for first tokens, ends and otherwise every 10 ms, and an event then carries several tokens, as it may in
// vLLM. The clock is package time's, so testing/synctest drives it.
//
// # Endpoints
//
// Chat, completions, responses and messages go through the engine. The worker serves them beside /v1/embeddings, /pooling,
// /classify, /rerank, /score, audio and images, which it answers at once; a real one has the endpoints of its model's kind
// only, and 404 for the rest. /v1/responses keeps its answers as with VLLM_ENABLE_RESPONSES_API_STORE=1, so that
// previous_response_id, GET and cancel find them on the worker that made them and nowhere else; vLLM has neither DELETE
// (405) nor input_items (404).
//
// A reply calls a tool if tool_choice demands one, or leaves it free and the last user message contains "use the tool". Its
// arguments, as the text of a json_schema answer, are the least that fits the schema: the same at each call.
//
// # Sessions
//
// With Config.Sessions /invocations opens and closes SageMaker's sessions as vLLM does, its oddities included: an expired
// session is removed when it is named, and that one request is let in; /v1 paths ignore the field. Beside these there are
// sessions with a payload, a multimodal model's: {"requestType":"open_session", ...} with a body of any length, in whose first
// 4 KiB the requestType must stand, is answered with the id under the other of the two names that workers use. Every
// prompt that names the session then begins with tokens that stand for the payload, so that it shows in usage and in the
// cache; close_session or CLOSE frees it. A payload is counted and hashed as it comes, never held: what a test asks is
// whether every byte arrived, once (sha256 in the answer, session_bytes in /sim/stats), and a worker that kept 100 MB a
// session in memory, or on a disk, would be in the way of the measurements. Sessions die with the worker; vLLM's are files,
// and outlive its process where the disk does.
//
// # Faults
//
// POST /sim/fault or SetFault make a worker fail; Kill and Restart end and revive it. Drain is as recorded from 0.32.0: only
// the answers tell, not /health. See fault.go for all of them.
//
// # Load tests
//
// X-Sim-Tokens and X-Sim-Interval get a stream without an engine, for what stands in front of the worker: 9,000 of them at
// one event a second cost 0.2 of a core and 280 MB, of which net/http's two goroutines and two buffers a connection
// are most. Through the engine the caller could not choose the times.
//
// # What is left out
//
// LoRA, logprobs, stop strings, render, KV events, sleep and pause, and metrics that no router reads. As
// with --enable-prompt-tokens-details and --enable-auto-tool-choice. Specials in a prompt's text are plain text, where
// vLLM's tokenizers would let a user forge a role.
package vllmsim
