package exchange

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSaltComesOnce: the salt of a key takes the place of the client's own, and nothing else changes.
func TestSaltComesOnce(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                                        `{"cache_salt":"k/x"}`,
		`{"a":1}` + "\n":                            `{"a":1,"cache_salt":"k/x"}` + "\n",
		`{"cache_salt": "x" ,"a":{"b":[1]}}`:        `{"cache_salt": "k/x" ,"a":{"b":[1]}}`,
		`{"a":"cache_salt","cache_salt":null}`:      `{"a":"cache_salt","cache_salt":"k/x"}`,
		`{"cache_salt":"x","cache\u005fsalt":"y"}`:  `{"cache_salt":"x","cache\u005fsalt":"y","cache_salt":"k/x"}`,
		`{"a":{"cache_salt":"y"}}`:                  `{"a":{"cache_salt":"y"},"cache_salt":"k/x"}`,
		`{"temperature":NaN,"cache_salt":"x"} `:     `{"temperature":NaN,"cache_salt":"x","cache_salt":"k/x"} `,
		`{"prompt":"é\"","cache_salt":"é\"","n":1}`: `{"prompt":"é\"","cache_salt":"k/x","n":1}`,
	} {
		e := saltIn([]byte(body), "k/x")
		got := body[:e.Lo] + string(e.Text) + body[e.Hi:]
		if got != want || !strings.Contains(body, "NaN") && !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}
