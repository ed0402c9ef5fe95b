package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestProbeOfPairs: `check --probe` says which worker will not hand over the KV of a prompt, or take it, and leaves
// nothing pinned.
func TestProbeOfPairs(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	f := func(connector string, decoders, prefillers []string, wants ...string) {
		t.Helper()
		text := fmt.Sprintf("[[pools]]\nname = \"p\"\nstrategy = \"roundrobin\"\n[pools.disaggregation]\nconnector = %q\n", connector)
		for i, u := range decoders {
			text += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"d%d\"\nrole = \"decode\"\n", u, i)
		}
		for i, u := range prefillers {
			text += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"p%d\"\nrole = \"prefill\"\n", u, i)
		}
		write(t, filepath.Join(dir, "x.toml"), text)
		p := warmpath(t, dir, "check --probe --config x.toml")
		p.end()
		if n := strings.Count(p.String(), "will not pair"); n != len(wants) {
			t.Errorf("%s: %d will not pair; want %d: %s", connector, n, len(wants), p)
		}
		for _, want := range wants {
			if !strings.Contains(p.String(), want) {
				t.Errorf("%s: %s; want %q", connector, p, want)
			}
		}
	}
	sim := func(c vllmsim.Config) *vllmsim.Server {
		c.Speed = 20
		s, err := vllmsim.New(c)
		if err == nil {
			err = s.Start("127.0.0.1:0")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	prefiller := sim(vllmsim.Config{Connector: vllmsim.ConnectorNIXL, Role: vllmsim.RolePrefill})
	decoder := func() string {
		return sim(vllmsim.Config{Connector: vllmsim.ConnectorNIXL, Role: vllmsim.RoleDecode}).URL()
	}
	plain := sim(vllmsim.Config{}).URL()
	f("nixl", []string{decoder()}, []string{prefiller.URL()})
	f("nixl", []string{decoder(), decoder()}, []string{prefiller.URL(), plain}, "names no kv_transfer_params")
	if n := prefiller.Stats().BlocksPinned; n != 0 {
		t.Errorf("%d blocks are pinned", n)
	}
	engine := func(mode string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/get_server_info":
				fmt.Fprintf(w, `{"disaggregation_mode":%q}`, mode)
			case "/v1/models":
				fmt.Fprint(w, `{"data":[{"id":"sim"}]}`)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	f("sglang", []string{engine("decode")}, []string{engine("prefill")})
	f("sglang", []string{engine("null")}, []string{engine("decode")}, `"null", and its role here is decode`,
		`"decode", and its role here is prefill`)
	f("mooncake", []string{engine("")}, []string{engine("")}, "bootstrap server at 127.0.0.1:8998: ")
}
