package exchange

import (
	"bytes"
	"encoding/json"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// A key with a cache_salt has its prompts kept apart. The router writes the salt into the bodies, so that engines hash
// the blocks of such a key in a space of their own, and goes by it in its index, as by a client's own salt. A client
// that sends one divides the key's space further, and leaves it by none: a key's salt has no slash.

// saltIn returns what writes a salt into a body, which is an object in JSON, before its last brace: of a field that
// comes twice engines take the last.
func saltIn(body []byte, salt string) prompt.Edit {
	at := len(bytes.TrimRight(body, " \t\r\n")) - 1
	text, _ := json.Marshal(salt) // a string cannot fail
	text = append([]byte(`"cache_salt":`), text...)
	if !bytes.HasSuffix(bytes.TrimRight(body[:at], " \t\r\n"), []byte("{")) {
		text = append([]byte{','}, text...)
	}
	return prompt.Edit{Lo: at, Hi: at, Text: text}
}
