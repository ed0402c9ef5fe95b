package pair

import "encoding/json"

// HintField is the field of a body in which engines take hints on KV from a router.
const HintField = "kv_hints"

// envelope is vLLM's KvHintsEnvelope (vllm/v1/kv_hints/protocol.py; vLLM pull request 53423), which SGLang takes too.
type envelope struct {
	Protocol string   `json:"protocol_version"`
	Message  string   `json:"message_id"`
	Actions  []action `json:"actions"`
}

type action struct {
	ID      string  `json:"action_id"`
	Type    string  `json:"action_type"`
	Version string  `json:"action_version"`
	Payload payload `json:"payload"`
}

// payload is that of kv.fetch, as NVIDIA's KVCR reads it (kvcr/hint_parser.py) and Dynamo sends it
// (lib/kv-router/src/kv_hints.rs): the engine takes from the source the blocks that it lacks.
type payload struct {
	Source string   `json:"source_control_endpoint"`
	Hashes []uint64 `json:"block_hashes"` // as in the source's KV events, from the first block of the prompt on
	Mode   string   `json:"mode"`
}

// FetchHint returns the value of HintField that has an engine copy blocks from the source. id is the request's.
func FetchHint(id, source string, hashes []uint64) []byte {
	text, _ := json.Marshal(envelope{Protocol: "0.1", Message: id, Actions: []action{{ID: id + "/fetch", Type: "kv.fetch",
		Version: "1.0", Payload: payload{Source: source, Hashes: hashes, Mode: "copy"}}}}) // strings and numbers cannot fail
	return text
}
