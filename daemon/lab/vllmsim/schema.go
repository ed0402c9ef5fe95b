package vllmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// schema is what the simulator reads of a JSON schema.
type schema struct {
	Type       any                        `json:"type"`
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Old        map[string]json.RawMessage `json:"definitions"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Properties json.RawMessage            `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	MinItems   int                        `json:"minItems"`
	MinLength  int                        `json:"minLength"`
	Minimum    *json.Number               `json:"minimum"`
}

// maxDepth and maxSample bound what a schema can ask for.
const (
	maxDepth  = 12
	maxSample = 1 << 16 // bytes
)

// sampleOf returns a JSON value, in ASCII, that fits the schema: every property in its order, the first of what there
// is to choose from, nothing in lists that may be empty. A schema that it cannot read gives {}.
func sampleOf(raw json.RawMessage) string {
	if isNull(raw) {
		return "{}"
	}
	var root schema
	if json.Unmarshal(raw, &root) != nil {
		return "{}"
	}
	s := sampler{defs: root.Defs}
	if s.defs == nil {
		s.defs = root.Old
	}
	b := s.value(nil, raw, 0)
	if len(b) > maxSample || !json.Valid(b) {
		return "{}"
	}
	return ascii(b)
}

// ascii writes what is beyond ASCII in a JSON text as \u escapes.
func ascii(b []byte) string {
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out.WriteByte(byte(r))
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
	}
	return out.String()
}

// sampler makes a sample; the definitions are those that a $ref may name.
type sampler struct{ defs map[string]json.RawMessage }

func (s sampler) value(b []byte, raw json.RawMessage, depth int) []byte {
	var v schema
	if depth > maxDepth || len(b) > maxSample || json.Unmarshal(raw, &v) != nil {
		return append(b, "null"...)
	}
	switch {
	case v.Ref != "":
		return s.value(b, s.defs[v.Ref[strings.LastIndexByte(v.Ref, '/')+1:]], depth+1)
	case v.Const != nil:
		return compact(b, v.Const)
	case len(v.Enum) > 0:
		return compact(b, v.Enum[0])
	}
	for _, choice := range [][]json.RawMessage{v.AnyOf, v.OneOf, v.AllOf} {
		if len(choice) > 0 {
			return s.value(b, choice[0], depth+1)
		}
	}
	kind, _ := v.Type.(string)
	if list, ok := v.Type.([]any); ok && len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		return appendQuoted(b, strings.Repeat("kalo", 1+min(v.MinLength, 1024)/4))
	case "integer", "number":
		if v.Minimum != nil {
			return append(b, *v.Minimum...)
		}
		return append(b, '7')
	case "boolean":
		return append(b, "true"...)
	case "array":
		return s.list(b, &v, depth)
	case "object", "":
		return s.object(b, &v, depth)
	}
	return append(b, "null"...)
}

func (s sampler) list(b []byte, v *schema, depth int) []byte {
	b = append(b, '[')
	for i := range min(v.MinItems, 16) {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.value(b, v.Items, depth+1)
	}
	return append(b, ']')
}

func (s sampler) object(b []byte, v *schema, depth int) []byte {
	b = append(b, '{')
	d := json.NewDecoder(bytes.NewReader(v.Properties))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		for i := 0; d.More(); i++ {
			key, err := d.Token()
			var raw json.RawMessage
			if err != nil || d.Decode(&raw) != nil {
				break
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = s.value(append(appendQuoted(b, key.(string)), ':'), raw, depth+1)
		}
	}
	return append(b, '}')
}

func compact(b []byte, raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return append(b, "null"...)
	}
	return append(b, out.Bytes()...)
}

// answerFormat is response_format of a chat, and text.format of /v1/responses.
type answerFormat struct {
	Type       string          `json:"type"`
	Schema     json.RawMessage `json:"schema"`
	JSONSchema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// sample returns the text that such a format demands; "" is any.
func (f *answerFormat) sample() string {
	switch {
	case f == nil:
		return ""
	case f.Type == "json_object":
		return `{"kalo":7}`
	case f.Type == "json_schema" && f.JSONSchema != nil:
		return sampleOf(f.JSONSchema.Schema)
	case f.Type == "json_schema":
		return sampleOf(f.Schema)
	}
	return ""
}
