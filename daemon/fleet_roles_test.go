package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/lab/kubetest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// rolesFleet is a router before simulated prefillers and decoders.
type rolesFleet struct {
	*running
	prefill, decode []*vllmsim.Server
}

func startRoles(t *testing.T, prefillers, decoders int) *rolesFleet {
	t.Helper()
	return startRolesBy(t, prefillers, decoders, "prefixaware", "")
}

// startRolesBy is startRoles with another strategy, with its table.
func startRolesBy(t *testing.T, prefillers, decoders int, strategy, table string) *rolesFleet {
	t.Helper()
	f := &rolesFleet{}
	var urls []string
	role := func(n int, role string, to *[]*vllmsim.Server) {
		for range n {
			w, err := vllmsim.New(vllmsim.Config{ID: fmt.Sprint(role, len(*to)), Connector: vllmsim.ConnectorNIXL, Role: role,
				Speed: 20, Models: []string{"sim"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Start("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			*to = append(*to, w)
			urls = append(urls, w.URL())
		}
	}
	role(prefillers, vllmsim.RolePrefill, &f.prefill)
	role(decoders, vllmsim.RoleDecode, &f.decode)
	text := strings.Replace(settings(strategy, urls...), "[[pools.workers]]",
		"[pools.disaggregation]\nconnector = \"nixl\"\nthreshold = 500\n[[pools.workers]]", 1)
	for i := range prefillers {
		id := fmt.Sprintf("id = \"w%d\"\n", i+1)
		text = strings.Replace(text, id, id+"role = \"prefill\"\n", 1)
	}
	f.running = start(t, text+table, len(urls))
	return f
}

// pinned returns the blocks that prefillers keep, and those that nobody has read in time.
func (f *rolesFleet) pinned() (n int) {
	for _, w := range f.prefill {
		n += w.Stats().BlocksPinned + int(w.Stats().BlocksStranded)
	}
	return n
}

// longText is a prompt of about that many tokens that begins as no other does.
func longText(name string, n int) string { return name + " " + strings.Repeat("word ", n) }

// ask sends a completion, and returns why it was not answered.
func (f *rolesFleet) ask(ctx context.Context, name string, tokens int, stream bool) error {
	body := fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":8,"stream":%v}`, longText(name, tokens), stream)
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+f.Addr()+"/v1/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !bytes.Contains(text, []byte("finish_reason"))) {
		err = fmt.Errorf("%d %.300s", resp.StatusCode, text)
	}
	return err
}

// tellsPrefillers checks that the decisions on the admin port name prefillers.
func (f *rolesFleet) tellsPrefillers() {
	var kept []decisions.Decision
	f.decided("/api/v1/decisions?limit=20", &kept)
	if !slices.ContainsFunc(kept, func(d decisions.Decision) bool { return d.Split != nil && d.Split.Prefiller != "" }) {
		f.t.Errorf("none of %d decisions has a prefiller", len(kept))
	}
}

// TestRoles: prompts are computed by prefillers and answered by decoders, short ones by decoders alone. A client that
// leaves in any phase strands no block, and a prefiller that dies fails no request.
func TestRoles(t *testing.T) {
	t.Parallel()
	f := startRoles(t, 2, 2)
	for i := range 10 {
		if err := f.ask(t.Context(), fmt.Sprint("short ", i), 50, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range f.prefill {
		if n := w.Stats().Finished; n != 0 {
			t.Errorf("a prefiller got %d short prompts", n)
		}
	}
	var all sync.WaitGroup
	var left, served sync.Map
	for c := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for i := range 50 {
				name := fmt.Sprint("long ", c, " ", i)
				ctx, leave := context.WithCancel(t.Context())
				if r.IntN(4) == 0 { // a prefill takes some 10 ms
					time.AfterFunc(time.Duration(r.IntN(40_000))*time.Microsecond, leave)
				}
				switch err := f.ask(ctx, name, 1000+r.IntN(2000), r.IntN(2) == 0); {
				case err == nil:
					served.Store(name, true)
				case ctx.Err() == nil:
					t.Errorf("%s: %v", name, err)
				default:
					left.Store(name, true)
				}
				leave()
			}
		})
	}
	all.Wait()
	for end := time.Now().Add(20 * time.Second); f.pinned() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d blocks are pinned or stranded", f.pinned())
		}
	}
	count := func(m *sync.Map) (n int) { m.Range(func(any, any) bool { n++; return true }); return n }
	computed := 0
	for _, w := range f.decode {
		computed += int(w.Stats().ComputedTokens)
	}
	t.Logf("%d served, %d left; the decoders computed %d tokens of prompts", count(&served), count(&left), computed)
	if count(&served) < 200 || count(&left) < 20 {
		t.Errorf("%d served and %d left", count(&served), count(&left))
	}
	f.tellsPrefillers()
	_ = f.prefill[0].Close()
	for i := range 20 {
		if err := f.ask(t.Context(), fmt.Sprint("after ", i), 1500, false); err != nil {
			t.Errorf("after a prefiller has died: %v", err)
		}
	}
	_ = f.prefill[1].Close()
	for i := range 10 {
		if err := f.ask(t.Context(), fmt.Sprint("alone ", i), 1500, false); err != nil {
			t.Errorf("after both have died: %v", err)
		}
	}
	alone := f.metric("warmpath_prefills_total", `result="no_prefiller"`) + f.metric("warmpath_prefills_total", `result="failed"`)
	if done := f.metric("warmpath_prefills_total", `result="done"`); done < 200 || alone < 10 {
		t.Errorf("%v prefills, %v without; want 10 or more, as both prefillers were dead", done, alone)
	}
}

// TestPrefillersOfAService: the pods of a service of their own are prefillers, those of the pool's are not.
func TestPrefillersOfAService(t *testing.T) {
	t.Parallel()
	k := kubetest.Start(t)
	for service, address := range map[string]string{"decode": "127.0.0.1", "prefill": "127.0.0.2"} {
		k.Set(service, service+"-1", 1, kubetest.Pod{Name: service + "-0", Address: address, Ready: true})
	}
	r := start(t, fromDefaults(fmt.Sprintf("kubernetes = {service = \"decode\", api = %q, account = %q}\n"+
		"disaggregation = {connector = \"nixl\", prefill_service = \"prefill\"}", k.URL, k.Account)), 0)
	roles := map[string]string{}
	for _, w := range r.describe()[0].Workers {
		roles[w.ID] = w.Labels["role"]
	}
	if len(roles) != 2 || roles["decode-0"] != "" || roles["prefill-0"] != "prefill" {
		t.Errorf("%v", roles)
	}
}
