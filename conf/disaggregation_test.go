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

// TestOneWorkerOneRole: a worker has one role in one pool, and a pool has both sides of its pairs.
func TestOneWorkerOneRole(t *testing.T) {
	pool := func(name, workers string) string {
		return "[[pools]]\nname = \"" + name + "\"\nmodels = [\"" + name + "\"]\n[pools.disaggregation]\nconnector = \"nixl\"\n" + workers
	}
	worker := func(port, role string) string {
		return "[[pools.workers]]\nid = \"" + role + port + "\"\nurl = \"http://127.0.0.1:" + port + "\"\nrole = \"" + role + "\"\n"
	}
	for _, c := range []struct{ text, wrong string }{
		{pool("a", worker("1", "prefill")+worker("1", "decode")), "a worker belongs to one pool, once"},
		{pool("a", worker("1", "prefill")+worker("2", "decode")) + pool("b", worker("1", "prefill")+worker("3", "decode")),
			"a worker belongs to one pool, once"},
		{pool("a", worker("1", "prefill")+worker("2", "prefill")), "no worker of the pool answers a client"},
		{pool("a", worker("1", "prefill")+worker("2", "decode")) + pool("b", worker("3", "decode")), "no worker of the pool is a prefiller"},
		{pool("a", worker("1", "prefill")+worker("2", "decode")) + pool("b", worker("3", "prefill")+worker("4", "both")), ""},
	} {
		_, err := Parse([]byte(c.text), "a.toml")
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v; want %q of\n%s", err, c.wrong, c.text)
		}
	}
}
