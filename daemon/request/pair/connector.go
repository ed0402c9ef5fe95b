package pair

import "slices"

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

// Pins reports whether a prefiller keeps the KV of a first leg until a decoder has got it: a second leg must follow, or
// the memory is lost until the prefiller gives up (nixl: 30 s with vLLM 0.32, 480 s with older ones).
func (c Connector) Pins() bool { return c == NIXL }

// HeaderPrefiller tells a sidecar where to have the prompt computed, as HOST:PORT.
const HeaderPrefiller = "x-prefiller-host-port"
