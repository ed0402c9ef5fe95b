package vllmsim

import (
	"bytes"
	"encoding/json"
)

// The words of a body's requestType. The first two are vLLM's, the others those of a model that is given large input
// once.
const (
	requestNew          = "NEW_SESSION"
	requestClose        = "CLOSE"
	requestOpenPayload  = "open_session"
	requestClosePayload = "close_session"
)

// requestHead is how far into a body its requestType is looked for, and how long one that manages a session may be
// but for a payload.
const requestHead = 4 << 10

// requestType returns the field from the first bytes of a body; ok is false if it is not there.
func requestType(head []byte) (kind string, ok bool) {
	if !bytes.Contains(head, []byte(`"requestType"`)) {
		return "", false
	}
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return "", false
		}
		var value json.RawMessage
		if key == "requestType" {
			t, err := d.Token()
			kind, _ := t.(string)
			return kind, err == nil
		}
		if d.Decode(&value) != nil {
			return "", false
		}
	}
}

// refusedField is pydantic's error for one field.
type refusedField struct {
	Type  string          `json:"type"`
	Loc   []string        `json:"loc"`
	Msg   string          `json:"msg"`
	Input json.RawMessage `json:"input"`
	Ctx   *refusedContext `json:"ctx,omitempty"`
}

type refusedContext struct {
	Expected string `json:"expected"`
}

// invalidRequest returns pydantic's errors for a body with a requestType, "" if it is one of vLLM's two.
func invalidRequest(raw []byte, kind string) string {
	var list []refusedField
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token() // requestType has seen the brace
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return "JSON decode error: " + err.Error()
		}
		switch name, _ := key.(string); {
		case name != "requestType":
			list = append(list, refusedField{
				Type:  "extra_forbidden",
				Loc:   []string{name},
				Msg:   "Extra inputs are not permitted",
				Input: value,
			})
		case kind != requestNew && kind != requestClose:
			list = append(list, refusedField{
				Type:  "enum",
				Loc:   []string{name},
				Msg:   "Input should be 'NEW_SESSION' or 'CLOSE'",
				Input: value,
				Ctx:   &refusedContext{"'NEW_SESSION' or 'CLOSE'"},
			})
		}
	}
	if len(list) == 0 {
		return ""
	}
	b, _ := json.Marshal(list) // strings, and what was JSON before
	return string(b)
}
