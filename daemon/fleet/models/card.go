package models

import "encoding/json"

// card is what is read of a model's entry of /v1/models. What the entry does not state, or in another type, is zero.
type card struct {
	length       float64 // max_model_len
	root, parent string
}

func readCard(raw json.RawMessage) card {
	var entry struct {
		Length any `json:"max_model_len"`
		Root   any `json:"root"`
		Parent any `json:"parent"`
	}
	if json.Unmarshal(raw, &entry) != nil {
		return card{}
	}
	var c card
	c.root, _ = entry.Root.(string)
	c.parent, _ = entry.Parent.(string)
	c.length, _ = entry.Length.(float64)
	return c
}
