// Package pair has what the two workers of one request get where one computes its prompt and the other its answer
// (disaggregated prefill and decode). It knows the forms of the connectors that bring the KV cache from one to the
// other, and no HTTP, no clock and no worker.
//
// The first leg is the client's request with an answer of one token; its prefill is what counts. The second leg is the
// client's request, and says where the KV is. Both are the client's body with fields behind its last one, in place of
// its own of the same names: no other byte changes and nothing is decoded. What a client may not send is taken out of
// both (alone.go), also of bodies that are too long to be held.
//
// # Connectors
//
// Whatever differs between two connectors is in their rows (connector.go).
//
//	nixl      one leg after the other. The prefiller's answer has kv_transfer_params, which the decoder gets as they are
//	lmcache   one leg after the other, and nothing between them: both workers look into one LMCache
//	mooncake  both legs at once, under one transfer_id. The decoder is told the prefiller's bootstrap server and engine
//	sglang    both legs at once with the same bootstrap_host, bootstrap_port and bootstrap_room, a room for each prompt
//	sidecar   one leg, to the decoder: x-prefiller-host-port names the prefiller to the proxy beside it (llm-d)
//
// The forms are those of vLLM's examples (toy_proxy_server.py of the nixl_integration tests,
// mooncake_connector_proxy.py), of production-stack, of SGLang's router and of llm-d's sidecar. The tests have them
// with their sources.
package pair
