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

// row is what the router knows of a connector. Whatever differs between two connectors stands here: no other package
// asks for one by its name.
type row struct {
	name  Connector
	order order
	proof Proof

	alone   bool // a decoder serves a request of which no prefiller has computed the prompt
	prompts bool // one pair may carry several prompts
	answers bool // and several answers to one prompt
	pins    bool // a prefiller keeps the KV of a first leg until a decoder has got it
	aborts  bool // a first leg that has begun may be ended

	ask  func(t *Transfer, f *fields)                // what the body of the first leg says of the KV; nil = nothing
	tell func(t *Transfer, f *fields, handed []byte) // and that of the second; nil = nothing
}

// order is when the legs of a request are sent.
type order uint8

const (
	inTurn order = iota // the second when the first has ended: its first byte shows how long the KV was on its way
	atOnce              // both at the same time: the decoder waits for the prefiller
	within              // the second alone: a proxy beside the decoder sends the first
)

// Proof is what shows that the prefillers and decoders of a pool will meet.
type Proof uint8

// The proofs.
const (
	Unseen      Proof = iota // nothing does
	ByParams                 // a prefiller's answer has kv_transfer_params; without them no decoder finds its KV
	ByBootstrap              // a server of the prefiller names its engine, and the decoder is told that name
	ByMode                   // each server names the mode that it was started in
)

// rows are the connectors.
//
// A pair whose decoder is told whose KV it reads, and does not find it by the prompt, carries one prompt and one
// answer. Of a request with two prompts vLLM (0.32) names the first one's, and the engine of a decoder that is told to
// read both from there ends; two answers both read and free one KV, so that the second may read what is another
// request's by then. SGLang has a room for each prompt. Its answers to one prompt share a room, so that a decoder waits
// for the second for ever (sglang 30723, dynamo 14098).
var rows = [...]row{
	{name: NIXL, order: inTurn, proof: ByParams, alone: true, pins: true,
		// toy_proxy_server.py of vLLM's nixl_integration tests. The prefiller keeps the KV for 30 s with vLLM 0.32, and for
		// 480 s with older ones.
		ask: func(_ *Transfer, f *fields) { f.add(keyParams, nixlAsk) },
		tell: func(_ *Transfer, f *fields, handed []byte) {
			if handed != nil {
				f.add(keyParams, string(handed))
			}
		}},
	// Both engines look into one LMCache. One whose client leaves while KV is stored ends (vllm 43226).
	{name: LMCache, order: inTurn, alone: true, prompts: true, answers: true},
	{name: Mooncake, order: atOnce, proof: ByBootstrap, alone: true, aborts: true,
		ask: (*Transfer).askMooncake, tell: (*Transfer).tellMooncake},
	// SGLang's decode server answers 400 to a request without a bootstrap room.
	{name: SGLang, order: atOnce, proof: ByMode, prompts: true, aborts: true,
		ask:  func(t *Transfer, f *fields) { t.meet(f) },
		tell: func(t *Transfer, f *fields, _ []byte) { t.meet(f) }},
	// llm-d's sidecar sends the first leg itself, to the address in x-prefiller-host-port.
	{name: Sidecar, order: within, alone: true, aborts: true},
}

// row returns the row of c, or an empty row if c is not one of the connectors.
func (c Connector) row() *row {
	for i := range rows {
		if rows[i].name == c {
			return &rows[i]
		}
	}
	return &row{}
}

// Connectors returns the names of all.
func Connectors() (names []string) {
	for i := range rows {
		names = append(names, string(rows[i].name))
	}
	return names
}

// Known reports whether c is one of the connectors.
func (c Connector) Known() bool { return c.row().name != "" }

// AtOnce reports whether both legs are sent at the same time.
func (c Connector) AtOnce() bool { return c.row().order == atOnce }

// InTurn reports whether the second leg is sent when the first has ended.
func (c Connector) InTurn() bool { return c.row().order == inTurn }

// Within reports whether the second leg alone is sent, to a proxy that sends the first.
func (c Connector) Within() bool { return c.row().order == within }

// Proof returns what shows that the prefillers and decoders will meet.
func (c Connector) Proof() Proof { return c.row().proof }

// Carries reports whether a pair takes a request with so many prompts, and answers to each.
func (c Connector) Carries(prompts, answers int) bool {
	r := c.row()
	return (prompts <= 1 || r.prompts) && (answers <= 1 || r.answers)
}

// Alone reports whether a decoder serves a request of which no prefiller has computed the prompt.
func (c Connector) Alone() bool { return c.row().alone }

// Pins reports whether a prefiller keeps the KV of a first leg until a decoder has got it: a second leg must follow, or
// the memory is lost until the prefiller gives up.
func (c Connector) Pins() bool { return c.row().pins }

// Aborts reports whether a first leg that has begun may be ended. If not, its memory would be lost, or its engine end.
func (c Connector) Aborts() bool { return c.row().aborts }

// families are the beginnings of the fields by which routers, sidecars, gateways and workers name each other, by their
// third byte: llm-d's sidecar reads x-prefiller-, x-encoder-, x-kv- and x-data-parallel-, and x-llm-d- before them;
// Dynamo x-worker-, x-prefill-, x-dp- and x-dynamo-; SGLang's gateway x-smg-target-; Envoy x-gateway-destination-. If a
// client could set such a field, one of them would call the address that the client names, or read the memory of
// another worker.
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
