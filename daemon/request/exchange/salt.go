package exchange

import (
	"bytes"
	"encoding/json"
)

// A key with a cache_salt has its prompts kept apart. The router writes the salt into the bodies, so that engines hash
// the blocks of such a key in a space of their own, and goes by it in its index, as by a client's own salt. A client
// that sends one divides the key's space further, and leaves it by none: a key's salt has no slash.

// writeSalt returns a body, which is an object in JSON, up to its last brace, and what comes behind that: of a field
// that comes twice engines take the last.
func writeSalt(body []byte, salt string) (start, end []byte) {
	start = bytes.TrimRight(body, " \t\r\n")
	start = start[:len(start)-1]
	text, _ := json.Marshal(salt) // a string cannot fail
	if !bytes.HasSuffix(bytes.TrimRight(start, " \t\r\n"), []byte("{")) {
		end = append(end, ',')
	}
	end = append(append(end, `"cache_salt":`...), text...)
	return start, append(end, '}')
}
