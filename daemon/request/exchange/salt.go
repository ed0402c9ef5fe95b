package exchange

import (
	"bytes"
	"encoding/json"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// A key with a cache_salt has its prompts kept apart. The router writes the salt into the bodies, so that engines hash
// the blocks of such a key in a space of their own, and goes by it in its index, as by a client's own salt. A client
// that sends one divides the key's space further, and leaves it by none: a key's salt has no slash.

// saltIn returns what writes a salt into a body, which is an object in JSON: in place of the client's own, since vLLM's
// Rust front end refuses a field that comes twice, or before its last brace. Where the client's is not found, or
// comes twice, that is the one which engines in Python take.
func saltIn(body []byte, salt string) prompt.Edit {
	text, _ := json.Marshal(salt) // a string cannot fail
	if lo, hi := ownSalt(body); hi > 0 {
		return prompt.Edit{Lo: lo, Hi: hi, Text: text}
	}
	at := len(bytes.TrimRight(body, " \t\r\n")) - 1
	text = append([]byte(`"cache_salt":`), text...)
	if !bytes.HasSuffix(bytes.TrimRight(body[:at], " \t\r\n"), []byte("{")) {
		text = append([]byte{','}, text...)
	}
	return prompt.Edit{Lo: at, Hi: at, Text: text}
}

// ownSalt returns where the value of the client's salt is: body[lo:hi]. hi is 0 if it has none, or several.
func ownSalt(body []byte) (lo, hi int) {
	if !bytes.Contains(body, []byte("cache_salt")) {
		return 0, 0
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return 0, 0
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return 0, 0
		}
		if key == "cache_salt" {
			if hi > 0 {
				return 0, 0
			}
			hi = int(d.InputOffset())
			lo = hi - len(value)
		}
	}
	return lo, hi
}
