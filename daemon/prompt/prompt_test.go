package prompt

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSmoke(t *testing.T) {
	_ = os.Args
	_ = filepath.Join
	var p Parser
	r, err := p.Parse(Chat, []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil || r.Model != "m" || !r.Stream || !r.HasPrompt {
		t.Fatal(r, err)
	}
	r.Hash(1)
	if len(r.Chains) != 1 || r.Chains[0].Bytes != 1+4+1+2+1 {
		t.Fatal(r.Chains)
	}
}
