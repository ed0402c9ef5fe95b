package probe

import (
	"encoding/json"
	"fmt"
)

// parseModels returns the ids of an answer of /v1/models, each once, and their entries. LoRA adapters are entries like
// models. An entry without an id is skipped.
func parseModels(b []byte) (ids []string, entries []json.RawMessage, err error) {
	var answer struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, nil, fmt.Errorf("/v1/models is not JSON: %w", err)
	}
	if answer.Data == nil {
		return nil, nil, fmt.Errorf(`/v1/models has no list "data"`)
	}
	seen := map[string]bool{}
	for _, raw := range answer.Data {
		var entry struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &entry) != nil || entry.ID == "" || seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		ids = append(ids, entry.ID)
		entries = append(entries, raw)
	}
	return ids, entries, nil
}
