package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/kubetest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// rolesFleet is a router before simulated prefillers and decoders.
type rolesFleet struct {
	*running
	prefill, decode []*vllmsim.Server
}

// rolesOptions are what is special of one.
type rolesOptions struct {
	connector string                               // default nixl
	rule      string                               // default threshold
	strategy  string                               // default prefixaware
	table     string                               // of that, and further ones; "" = it has none
	server    string                               // keys of [server]
	pool      string                               // keys of the pool
	answering bool                                 // the prefillers answer too
	sim       vllmsim.Config                       // of each worker, but for what startRolesWith sets
	before    func(w *vllmsim.Server) (url string) // stands before each decoder; nil = nothing does

	beforePrefiller func(w *vllmsim.Server) (url string) // likewise before each prefiller
}

func startRoles(t *testing.T, prefillers, decoders int) *rolesFleet {
	t.Helper()
	return startRolesWith(t, prefillers, decoders, rolesOptions{})
}

func startRolesWith(t *testing.T, prefillers, decoders int, o rolesOptions) *rolesFleet {
	t.Helper()
	f := &rolesFleet{}
	var urls []string
	role := func(n int, role string, to *[]*vllmsim.Server) {
		for range n {
			c := o.sim
			c.ID, c.Speed, c.Models = fmt.Sprint(role, len(*to)), 20, []string{"sim"}
			if o.connector == "" {
				c.Connector, c.Role = vllmsim.ConnectorNIXL, role
				if o.answering && role == vllmsim.RolePrefill {
					c.Role = vllmsim.RoleBoth
				}
			}
			w, err := vllmsim.New(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Start("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			*to = append(*to, w)
			url := w.URL()
			if role == vllmsim.RoleDecode && o.before != nil {
				url = o.before(w)
			}
			if role == vllmsim.RolePrefill && o.beforePrefiller != nil {
				url = o.beforePrefiller(w)
			}
			urls = append(urls, url)
		}
	}
	role(prefillers, vllmsim.RolePrefill, &f.prefill)
	role(decoders, vllmsim.RoleDecode, &f.decode)
	text := strings.Replace(settings(cmp.Or(o.strategy, "prefixaware"), urls...), "[[pools.workers]]",
		fmt.Sprintf("[pools.disaggregation]\nconnector = %q\nrule = %q\nthreshold = 500\nprefillers_answer = %v\n[[pools.workers]]",
			cmp.Or(o.connector, "nixl"), cmp.Or(o.rule, "threshold"), o.answering), 1)
	for i := range prefillers {
		id := fmt.Sprintf("id = \"w%d\"\n", i+1)
		text = strings.Replace(text, id, id+"role = \"prefill\"\n", 1)
	}
	f.running = start(t, withServer(withPool(text, o.pool), o.server)+o.table, len(urls))
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
	_, err := f.say(ctx, &roleForms[0], longText(name, tokens), stream)
	return err
}

// say sends a request in a form, and returns its answer, or why it has none.
func (f *rolesFleet) say(ctx context.Context, form *roleForm, prompt string, stream bool) ([]byte, error) {
	body := fmt.Sprintf(`{"model":"sim","stream":%v,`+form.body+`}`, stream, prompt)
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+f.Addr()+form.path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !bytes.Contains(text, []byte(form.ends))) {
		err = fmt.Errorf("%d %.300s", resp.StatusCode, text)
	}
	return text, err
}

// roleForm is one way to ask for an answer of 8 tokens.
type roleForm struct{ path, body, ends string }

var roleForms = []roleForm{
	{"/v1/completions", `"max_tokens":8,"stream_options":null,"prompt":%q`, "finish_reason"},
	{"/v1/chat/completions", `"max_tokens":8,"messages":[{"role":"user","content":%q}]`, "finish_reason"},
	{"/v1/responses", `"max_output_tokens":8,"input":%q`, `"usage":{`},
	{"/v1/messages", `"max_tokens":8,"messages":[{"role":"user","content":%q}]`, "stop_reason"},
}

// TestRolesOfEachForm: prompts of each endpoint are computed by prefillers, and what the client is told of the cache is
// what the prefiller held: nothing of a prompt that is new. The counts of messages add up to the prompt all the same.
func TestRolesOfEachForm(t *testing.T) {
	t.Parallel()
	f := startRoles(t, 1, 1)
	numbers := regexp.MustCompile(`"(input_tokens|cached_tokens|cache_creation_input_tokens|cache_read_input_tokens)": ?(\d+)`)
	for i := range roleForms {
		for _, stream := range []bool{false, true} {
			form, before := &roleForms[i], f.prefill[0].Stats().Finished
			said, err := f.say(t.Context(), form, longText(fmt.Sprint(form.path, stream), 1500), stream)
			if err != nil {
				t.Errorf("%s, stream %v: %v", form.path, stream, err)
			}
			if n := f.prefill[0].Stats().Finished - before; n != 1 {
				t.Errorf("%s, stream %v: %d prefills; want 1", form.path, stream, n)
			}
			last := map[string]int{}
			for _, m := range numbers.FindAllSubmatch(said, -1) {
				last[string(m[1])], _ = strconv.Atoi(string(m[2]))
			}
			if last["cached_tokens"] != 0 || last["cache_read_input_tokens"] != 0 {
				t.Errorf("%s, stream %v: %v; want nothing cached", form.path, stream, last)
			}
			n := last["input_tokens"] + last["cache_creation_input_tokens"]
			if form.path == "/v1/messages" && (n < 1500 || last["input_tokens"] > 16) {
				t.Errorf("%s, stream %v: %v; want all of the prompt, made in blocks of 16", form.path, stream, last)
			}
		}
	}
	eventually(t, "no blocks are pinned", func() bool { return f.pinned() == 0 }) // some a moment after the answer
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
			count := func(result string) float64 {
				return f.metric("warmpath_prefills_total", fmt.Sprintf("result=%q", result))
			}
			t.Fatalf("%d blocks are pinned or stranded; the router counts %v prefills dropped, %v freed, %v pinned, %v lost", f.pinned(),
				count("dropped"), count("freed"), count("pinned"), count("lost"))
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

// TestTheRateOfTransferIsShown: the overview and the page say whether the pool has learnt how fast KV comes from prefillers.
func TestTheRateOfTransferIsShown(t *testing.T) {
	t.Parallel()
	f := startRolesWith(t, 1, 1, rolesOptions{rule: "sooner"})
	split := func() *operator.SplitState {
		var o operator.Overview
		if code, text := f.decided("/api/v1/overview", &o); code != 200 || len(o.Pools) != 1 || o.Pools[0].Split == nil {
			t.Fatalf("%d %s", code, text)
		}
		return o.Pools[0].Split
	}
	if got, want := *split(), (operator.SplitState{Connector: "nixl", Threshold: 500}); got != want {
		t.Errorf("before: %+v; want %+v", got, want)
	}
	for i := range 3 {
		if err := f.ask(t.Context(), fmt.Sprint("learn ", i), 2000, true); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the rate is learnt", func() bool { s := split(); return s.Learnt && s.Rate > 0 && !s.Always })
	b := openTab(t)
	b.screen(1280, 800)
	b.call("Page.navigate", map[string]any{"url": "http://" + f.AdminAddr() + "/"}, nil)
	b.await("the rate", `document.querySelector("#splits").innerText.includes("tokens/s, learnt")`)
	if *pictures != "" {
		b.eval(`document.querySelector("#splits").scrollIntoView({block: "center"})`)
		b.look(filepath.Join(*pictures, "page-roles.png"), 1280, 2400, "light")
	}
	b.blameless("http://" + f.AdminAddr())
}

// TestTokenIDsInRoles: token ids are split and routed by their prefix, and each role has its own demand.
func TestTokenIDsInRoles(t *testing.T) {
	t.Parallel()
	type body struct {
		IDs      []int           `json:"token_ids"`
		Params   json.RawMessage `json:"kv_transfer_params"`
		Sampling struct {
			Max   int `json:"max_tokens"`
			Extra struct {
				Params json.RawMessage `json:"kv_transfer_params"`
			} `json:"extra_args"`
		} `json:"sampling_params"`
	}
	var mu sync.Mutex
	seen := map[string][]body{}
	at := func(name string) string {
		return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			var b body
			_ = json.NewDecoder(r.Body).Decode(&b)
			mu.Lock()
			seen[name] = append(seen[name], b)
			mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"request_id":"x","choices":[{"index":0,"token_ids":[7],"finish_reason":"length"}],`+
				`"kv_transfer_params":{"remote_host":"h"}}`)
		}).URL
	}
	text := withPool(settings("prefixaware", at("p"), at("d"), at("e")),
		`disaggregation = { connector = "nixl", rule = "threshold", threshold = 500 }`)
	r := start(t, strings.Replace(text, "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1), 3)
	ids := make([]string, 1200)
	for i := range ids {
		ids[i] = strconv.Itoa(i * 7)
	}
	for _, n := range []int{400, 600, 900, 1200} {
		s := r.do("POST", "/inference/v1/generate", fmt.Sprintf(`{"model":"sim","token_ids":[%s],"sampling_params":{"max_tokens":9}}`,
			strings.Join(ids[:n], ",")))
		if s.status != 200 || strings.Contains(s.body, "remote_host") {
			t.Errorf("%d ids: %d %s", n, s.status, s.body)
		}
	}
	own := fmt.Sprintf(`{"model":"sim","token_ids":[1,2,3,%s],"sampling_params":{"max_tokens":9,"extra_args":{"kv_transfer_params":`+
		`{"do_remote_prefill":true,"remote_host":"evil"}}}}`, strings.Join(ids, ","))
	if s := r.do("POST", "/inference/v1/generate", own); s.status != 200 {
		t.Errorf("a client's own parameters: %d %s", s.status, s.body)
	}
	mu.Lock()
	defer mu.Unlock()
	for w, all := range seen {
		if last := all[len(all)-1]; last.IDs[0] == 1 {
			seen[w] = all[:len(all)-1]
			if w == "p" || len(last.Params)+len(last.Sampling.Extra.Params) > 0 {
				t.Errorf("a client's own parameters: %s got %+v", w, last)
			}
		}
	}
	answers := append(seen["d"], seen["e"]...)
	if len(seen["p"]) != 3 || len(answers) != 4 || len(seen["d"])*len(seen["e"]) != 0 {
		t.Errorf("%d prefills, %d and %d answers", len(seen["p"]), len(seen["d"]), len(seen["e"]))
	}
	for i, b := range answers {
		if split := i > 0; b.Sampling.Max != 9 || (len(b.Sampling.Extra.Params) > 0) != split || string(b.Params) != string(b.Sampling.Extra.Params) {
			t.Errorf("answer %d of %d ids: %s, sampling %+v", i, len(b.IDs), b.Params, b.Sampling)
		}
	}
	for _, b := range seen["p"] {
		if b.Sampling.Max != 1 || !bytes.Contains(b.Sampling.Extra.Params, []byte("do_remote_decode")) {
			t.Errorf("a prefill with %+v", b.Sampling)
		}
	}
	for role, up := range map[string]float64{"prefill": 1, "decode": 2} {
		if got := r.metric("warmpath_role_workers_up", `role="`+role+`"`); got != up {
			t.Errorf("%v up with the role %s", got, role)
		}
		if got := r.metric("warmpath_role_busy_workers", `role="`+role+`"`); got < 0 || got > up {
			t.Errorf("%v busy with the role %s", got, role)
		}
	}
	if got := r.metric("warmpath_role_busy_workers", `role="prefill"`); got == 0 {
		t.Error("no prefill is counted at the prefiller")
	}
}
