package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckToken: check refuses an operator's token with which serve would not start.
func TestCheckToken(t *testing.T) {
	f := func(token, want string) {
		t.Helper()
		dir := workplace(t)
		write(t, filepath.Join(dir, "x.toml"), strings.Replace(settings, "[server]", "[server]\nadmin_token_file = \"token\"", 1))
		if token != "" {
			write(t, filepath.Join(dir, "token"), token)
		}
		p := warmpath(t, dir, "check --config x.toml")
		if code := p.end(); code != 1 || !strings.Contains(p.String(), "x.toml:2: server.admin_token_file: "+want) {
			t.Errorf("exit %d: %s", code, p)
		}
	}
	f("", "open ")
	f("short\n", "the token in ")
}

// TestProbeOfPods: pods that only the cluster lists are a note. A list of workers that cannot be read is WRONG.
func TestProbeOfPods(t *testing.T) {
	dir := workplace(t)
	pods := "[[pools]]\nname = \"p\"\nstrategy = \"roundrobin\"\nkubernetes = { service = \"vllm\", namespace = \"n\" }\n"
	write(t, filepath.Join(dir, "x.toml"), pods)
	out := warmpath(t, dir, "check --probe --config x.toml").succeed()
	if !strings.Contains(out, "note: pool p: pods") || strings.Contains(out, "WRONG") {
		t.Errorf("it says %q", out)
	}
	write(t, filepath.Join(dir, "x.toml"), pods+"workers_dns = \"none.invalid:8000\"\n")
	p := warmpath(t, dir, "check --probe --config x.toml")
	if code := p.end(); code != 1 || !strings.Contains(p.String(), "WRONG p ") {
		t.Errorf("exit %d: %s", code, p)
	}
}
