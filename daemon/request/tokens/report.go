package tokens

import (
	"bytes"
	"encoding/json"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// reportMode is the argument of vLLM 0.26 and later that makes a worker announce blocks again which it has announced
// before.
const reportMode = "kv_cache_report_mode"

// Unreported returns a body without the argument kv_cache_report_mode. An engine that announces blocks again does not
// mark them: they look like further copies, and would be believed held when they are gone. A name written with escapes
// is not looked for.
func Unreported(body []byte) []byte {
	if !bytes.Contains(body, []byte(`"`+reportMode+`"`)) {
		return body
	}
	var arguments []byte
	prompt.Fields(body, func(name, value []byte) bool {
		if string(name) == "vllm_xargs" {
			arguments = value // the last one counts, as for the engine
		}
		return true
	})
	kept, found := []byte{'{'}, false
	whole := prompt.Fields(arguments, func(name, value []byte) bool {
		if string(name) == reportMode {
			found = true
			return true
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		quoted, _ := json.Marshal(string(name)) // a string cannot fail
		kept = append(append(append(kept, quoted...), ':'), value...)
		return true
	})
	if !whole || !found {
		return body
	}
	at := cap(body) - cap(arguments)
	out := make([]byte, 0, len(body))
	out = append(append(append(out, body[:at]...), kept...), '}')
	return append(out, body[at+len(arguments):]...)
}
