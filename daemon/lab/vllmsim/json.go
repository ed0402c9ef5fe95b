package vllmsim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The answers are written by hand: their key order is vLLM's, and an event of a stream costs no reflection. What stands
// after a reply's text never needs escaping: replies are letters and blanks.

// appendQuoted appends a JSON string.
func appendQuoted(b []byte, s string) []byte {
	q, _ := json.Marshal(s) // a string cannot fail
	return append(b, q...)
}

// appendIDs appends a list of n token ids.
func appendIDs(b []byte, n int, id func(int) uint32) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id(i)), 10)
	}
	return append(b, ']')
}

// jsonField returns a name and its value.
func jsonField(name string, value any) []byte {
	raw, _ := json.Marshal(value) // plain structs
	return append([]byte(`"`+name+`":`), raw...)
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// pyFloat writes a number as Python's repr of a float does.
func pyFloat(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

// pyNumber is a number written as Python's repr of a float.
type pyNumber float64

// MarshalJSON writes 1 as 1.0.
func (n pyNumber) MarshalJSON() ([]byte, error) { return []byte(pyFloat(float64(n))), nil }

// newID returns the random part of an id.
func newID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
