package probe

import (
	"encoding/json"
	"strconv"
)

// countSources returns how many data-parallel engines an answer of /kv_event_sources lists (vLLM 0.31 and later): an
// object with a key for the rank of each engine that publishes KV events,
//
//	{"0":{"endpoint":"tcp://*:5557",...},"1":{...}}
//
// It is empty if none does; the count is then 0.
func countSources(text []byte) int {
	var of map[string]json.RawMessage
	if json.Unmarshal(text, &of) != nil || len(of) > maxEngines {
		return 0
	}
	for rank := range of {
		if _, err := strconv.ParseUint(rank, 10, 31); err != nil {
			return 0
		}
	}
	return len(of)
}
