package sagemaker

import (
	"bytes"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
)

// maxWord bounds a requestType that is returned: none that means something is longer.
const maxWord = 64

var requestTypeKey = []byte(`"requestType"`)

// RequestType returns the string that stands as requestType at the top level of a JSON object, or "". Of several the
// last counts, as for the workers' parsers. It is lenient: the worker refuses a body that is not JSON. body may be
// cut anywhere; what comes after the cut is not seen. A body without the word costs one search.
func RequestType(body []byte) string {
	if !bytes.Contains(body, requestTypeKey) {
		return ""
	}
	var w jsonwalk.Walker
	found, from := "", 0
	for i := 0; i < len(body); {
		t, n := w.Next(body[i:])
		if w.At("requestType") {
			switch {
			case t == jsonwalk.Quote && w.InText():
				from = i + n
			case t == jsonwalk.Quote:
				found = word(body[from:i])
			case t == jsonwalk.Colon:
				found = "" // and stays so if the value is no string, or is cut off
			}
		}
		i += n
		if t == jsonwalk.Close && w.Depth() <= 0 {
			break
		}
	}
	return found
}

// word returns a value as a string, without an allocation for the words that mean something.
func word(v []byte) string {
	for _, known := range [...]string{newSession, closeWord, closeSessionWord} {
		if string(v) == known {
			return known
		}
	}
	return string(v[:min(len(v), maxWord)])
}
