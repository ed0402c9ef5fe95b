package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon"
)

// TestWorkerCommands registers, lists and removes a worker at a daemon.
func TestWorkerCommands(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "sesame-sesame")
	c, err := conf.Parse([]byte(strings.Replace(settings, "[[pools]]", "admin_token_file = '"+token+"'\n[[pools]]", 1)), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; d.Close() })
	f := func(line, want string) {
		t.Helper()
		var out strings.Builder
		c := root()
		c.SetOut(&out)
		if err := execute(t.Context(), c, append(strings.Fields(line), "--admin", d.AdminAddr(), "--token-file", token)); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s; want %q", line, &out, want)
		}
	}
	add := "worker add http://127.0.0.1:2 --id a --label tier=rl --weight 2 --ttl 90s"
	f(add, "a is a worker of pool pool1 for 1m30s, unless it is renewed; it is ")
	f(add, "warning: server.state_file is not set")
	f(add+" --role decode", "role: ")
	f("worker ls", "registered     1m30s")
	f("worker ls --pool none", "there is no such pool")
	f("worker ls --json", `"origin":"configuration"`)
	f("status", ", 1 registered,")
	f("worker rm a", "a is no worker of pool pool1 any more")
	f("worker rm a", `no worker "a" has registered`)
}
