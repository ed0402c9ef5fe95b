package conf

import (
	"strings"
	"testing"
)

// TestPrefillersAnswer: prefillers alone make a pool if they answer too, and those of SGLang cannot.
func TestPrefillersAnswer(t *testing.T) {
	for _, c := range []struct{ keys, wrong string }{
		{`connector = "sglang"`, "no worker of the pool is a decode server of SGLang"},
		{`connector = "nixl"`, "no worker of the pool answers a client"},
		{"connector = \"nixl\"\nprefillers_answer = true", ""},
		{"connector = \"sglang\"\nprefillers_answer = true", "a prefill server of SGLang answers no request of its own"},
	} {
		_, err := Parse([]byte("[[pools]]\n[pools.disaggregation]\n"+c.keys+
			"\n[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\nrole = \"prefill\"\n"), "a.toml")
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v; want %q", c.keys, err, c.wrong)
		}
	}
}
