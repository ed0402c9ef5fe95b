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

// InTurn reports whether the second leg is sent when the first has ended, so that its first byte shows how long the KV
// was on its way.
func (c Connector) InTurn() bool { return c == NIXL || c == LMCache }

// Pins reports whether a prefiller keeps the KV of a first leg until a decoder has got it: a second leg must follow, or
// the memory is lost until the prefiller gives up (480 s for nixl).
func (c Connector) Pins() bool { return c == NIXL }

// HeaderPrefiller tells a sidecar where to have the prompt computed, as HOST:PORT.
const HeaderPrefiller = "x-prefiller-host-port"
