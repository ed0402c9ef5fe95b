package pair

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestExcerpt: what says where the KV is, and what was cached, is read of an answer of any length, wherever it stands.
func TestExcerpt(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		for _, from := range []io.Reader{strings.NewReader(answer), iotest.OneByteReader(strings.NewReader(answer))} {
			if got, err := Excerpt(from); string(got) != want || err != nil {
				t.Errorf("%.60s: %s, %v; want %s", answer, got, err, want)
			}
		}
	}
	f(`{"id":"x","choices":[{"usage":1,"kv_transfer_params":{}}],"usage":{"a": [1, 2]},"kv_transfer_params": {"b":"}\"{"} }`,
		`{"usage":{"a": [1, 2]},"kv_transfer_params": {"b":"}\"{"} }`)
	f(` {"kv_transfer_params":null,"usage":7,"x":[1]}`, `{"kv_transfer_params":null,"usage":7}`)
	f(`{}`, `{}`)
	f(`{"usage":[],"prompt_token_ids":[`+strings.Repeat("123456,", 3_000)+`1]}`, `{"usage":[]}`)
	ids := `{"prompt_token_ids":[` + strings.Repeat("123456,", 1_000_000) + `1],"kv_transfer_params":{"remote_port":1}}`
	if text, err := Excerpt(strings.NewReader(ids)); string(Handed(text)) != `{"remote_port":1}` || err != nil {
		t.Errorf("behind %d bytes: %s, %v", len(ids), text, err)
	}
	broken := io.MultiReader(strings.NewReader(`{"usage":{}`), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := Excerpt(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken answer: %v", err)
	}
	if _, err := Excerpt(strings.NewReader(`{"usage":"` + strings.Repeat("x", maxExcerpt) + `"}`)); err != errExcerpt {
		t.Errorf("an endless field: %v", err)
	}
}
