// Pairs plays prefillers and decoders behind a running daemon, and adds up what must be nothing at the end:
//
//	testdata/run trials/pairs -bin bin/warmpath   # -requests 10000 of each fleet; -seed N; -connector REGEXP
//	{"fleet":"nixl vllm-0.32","requests":10000,"read":3121,"freed":402,"stranded":0,"blamed":0,"differ":0,...,"ok":true}
//
// A fleet is five workers of one engine, all in this process, behind one daemon. They refuse what the engine refuses
// (front.go has the rules and their sources), and they count: a prefiller keeps the blocks of a prompt until a decoder
// has read them, a decoder compares what it reads with its own prompt (memory.go). Some sixty clients send requests of
// all endpoints and forms, and some leave at any moment. Calls of both sides fail in any way, workers start again with
// another engine id, and the configuration changes roles and drops the pairs. What is sent, what fails and when
// something is broken depends on the seed and the number of the request alone.
//
// The exit status is 1 if, of any fleet,
//
//   - blocks are kept 5 s after the last answer (their leases are longer), but with mooncake, which has no way to free
//     them,
//   - a client got 400 or 422 for a request that a worker of that engine alone accepts,
//   - a decoder read blocks of another prompt, two transfers had one name, or a request that names one prompt's blocks
//     had several,
//   - a client's own kv_transfer_params, bootstrap_* or header reached a worker, or kv_transfer_params a client,
//   - a client that stayed got no answer, or another one's,
//   - an account of the daemon is above zero at the end, or
//   - so few prompts were handed over that all this shows nothing.
//
// What the workers do is not what GPUs do: no KV moves, and a prompt takes 10 µs a token.
package main
