package pair

import (
	"slices"
	"strings"
)

// Connector is what brings the KV cache from the prefiller to the decoder.
type Connector string

// The connectors.
const (
	NIXL     Connector = "nixl"
	LMCache  Connector = "lmcache"
	Mooncake Connector = "mooncake"
	SGLang   Connector = "sglang"
	Sidecar  Connector = "sidecar"
)

// Connectors returns the names of all.
func Connectors() []string {
	return []string{string(NIXL), string(LMCache), string(Mooncake), string(SGLang), string(Sidecar)}
}

// Known reports whether c is one of the connectors.
func (c Connector) Known() bool { return slices.Contains(Connectors(), string(c)) }

// AtOnce reports whether both legs are sent at the same time.
func (c Connector) AtOnce() bool { return c == Mooncake || c == SGLang }

// Names reports whether the decoder is told whose KV it reads, and does not find it by the prompt. That KV is of one
// prompt and for one answer. Of a request with two prompts vLLM (0.32) names the first one's, and the engine of a
// decoder that is told to read both from there ends; two answers both read and free one KV, so that the second may read
// what is another request's by then.
func (c Connector) Names() bool { return c != LMCache }

// InTurn reports whether the second leg is sent when the first has ended, so that its first byte shows how long the KV
// was on its way.
func (c Connector) InTurn() bool { return c == NIXL || c == LMCache }

// Alone reports whether a decoder serves a request of which no prefiller has computed the prompt. SGLang's decode
// server answers 400 to what has no bootstrap room.
func (c Connector) Alone() bool { return c != SGLang }

// Pins reports whether a prefiller keeps the KV of a first leg until a decoder has got it: a second leg must follow, or
// the memory is lost until the prefiller gives up (nixl: 30 s with vLLM 0.32, 480 s with older ones).
func (c Connector) Pins() bool { return c == NIXL }

// families are the beginnings of the fields by which routers, sidecars, gateways and workers name each other, by their
// third byte: llm-d's sidecar reads x-prefiller-, x-encoder-, x-kv- and x-data-parallel-, and x-llm-d- before them;
// Dynamo x-worker-, x-prefill-, x-dp- and x-dynamo-; SGLang's gateway x-smg-target-; Envoy x-gateway-destination-. With
// a client's field one of them would call the address that the client names, or read the memory of another worker.
var families = [...][]string{'b': {"x-bootstrap-"}, 'd': {"x-decode", "x-data-parallel-", "x-dp-", "x-dynamo-"},
	'e': {"x-encode"}, 'g': {"x-gateway-destination-"}, 'k': {"x-kv-"}, 'l': {"x-llm-d-"}, 'p': {"x-prefill"},
	'r': {"x-routing-proxy"}, 's': {"x-smg-target-", "x-sgl-"}, 'w': {"x-worker-"}}

// wishes are fields of those families that name nobody: what a request asks for, and whose it is.
var wishes = [...]string{"x-llm-d-slo-", "x-llm-d-inference-", "x-dynamo-session-"}

// NamesWorker reports whether a field is one by which routers and workers name each other, of any family.
func NamesWorker(name string) bool {
	if len(name) < 6 || name[1] != '-' || name[0]|0x20 != 'x' || int(name[2]|0x20) >= len(families) {
		return false
	}
	begins := func(with string) bool { return len(name) > len(with) && strings.EqualFold(name[:len(with)], with) }
	return slices.ContainsFunc(families[name[2]|0x20], begins) && !slices.ContainsFunc(wishes[:], begins)
}

// HeaderPrefiller tells a sidecar where to have the prompt computed, as HOST:PORT.
const HeaderPrefiller = "x-prefiller-host-port"
