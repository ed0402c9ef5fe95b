package conf

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	c, err := Parse([]byte(`[server]
explain_log = "slow:2s"
admin_token_file = "admin.token"
[cache]
redis = "redis://me:sesame@host:6379/0"
[strategies.mine]
path = "mine.wasm"
options = { api_key = "sesame", bonus = 2.0, upstream = "http://u:sesame@h" }
[[pools]]
strategy = "roundrobin"
workers = [{ url = "http://a", labels = { tier = "batch" } }]
`), "x.toml")
	if c == nil || err != nil && !strings.Contains(err.Error(), "mine.wasm") && !strings.Contains(err.Error(), "admin.token") {
		t.Fatal(err)
	}
	text, err := json.Marshal(Shown(c))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "sesame") {
		t.Errorf("a secret is shown: %s", text)
	}
	for _, want := range []string{`"redis":"redis://hidden@host:6379/0"`, `"api_key":"(hidden)"`, `"bonus":2`, `"explain_log":"slow:2s"`,
		`"admin_token_file":"admin.token"`, `"url":"http://a"`, `"tier":"batch"`, `"drain_timeout":"30s"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}
