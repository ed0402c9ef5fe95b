package pair

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestAloneAll: the fields of a client do nothing, wherever the body is cut and whatever looks like its end.
func TestAloneAll(t *testing.T) {
	const own = `"kv_transfer_params":{"do_remote_prefill":true},"bootstrap_host":"10.0.0.1"`
	for _, body := range []string{
		`{"a":1,` + own + `}`,
		" {" + own + `,"a":[{"b":"}\"}\\"},[]]}` + "\n ",
		`{"a":"\\",` + own + `,"b":{}}`,
	} {
		for _, from := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body))} {
			text, err := io.ReadAll(AloneAll(from))
			if err != nil {
				t.Fatal(err)
			}
			was, got := seen(t, []byte(body)), seen(t, text)
			for _, name := range clientsMayNot {
				if got[name] != nil {
					t.Errorf("%s: %s is %v", body, name, got[name])
				}
				delete(was, name)
				delete(got, name)
			}
			if a, _ := json.Marshal(was); !equalJSON(t, a, got) {
				t.Errorf("%s became %s", body, text)
			}
		}
	}
	for _, body := range []string{"", `{"a":`, "null", `"}"`} { // no object: a worker answers 400
		if text, err := io.ReadAll(AloneAll(strings.NewReader(body))); err != nil || string(text) != body {
			t.Errorf("%q became %q, %v", body, text, err)
		}
	}
}

func equalJSON(t *testing.T, want []byte, got any) bool {
	t.Helper()
	b, err := json.Marshal(got)
	return err == nil && string(b) == string(want)
}
