package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// broken is a daemon in which something is wrong, and the alerts that have to see it. "a b" is alert a of the pool b.
type broken struct {
	what   string
	alerts []string
	begin  func(t *testing.T) (admin string)
}

var brokenDaemons = []broken{
	{"nobody is there", []string{"WarmpathDown"}, nobody},
	{"pools that cannot serve", []string{"WarmpathPoolEmpty unfit", "WarmpathPoolEmpty nobody"}, poolsThatCannotServe},
	{"workers that reset connections", []string{"WarmpathRetries main"}, resets},
	{"a strategy that traps", []string{"WarmpathStrategySetAside main", "WarmpathFallbacks main"}, routedBy("trap.wat")},
	{"a strategy that turns requests away", []string{"WarmpathStrategyRejects main"}, routedBy("reject.wat")},
	{"a slow worker", []string{"WarmpathSlowFirstToken main", "WarmpathWorkersShort main"}, slow},
	{"a prefiller that is behind", []string{"WarmpathRoleShort main"}, behind},
	{"prefillers that are gone", []string{"WarmpathPrefillsFail main"}, gone},
	{"a worker that is full", []string{"WarmpathWorkerFull main", "WarmpathShedding main"}, full},
	{"a key at its limit", []string{"WarmpathKeyAtLimit"}, keyAtLimit},
	{"a key none of whose workers is up", []string{"WarmpathKeyWithoutWorkers main"}, keyWithoutWorkers},
	{"a key whose requests wait", []string{"WarmpathKeyWaits main"}, keyWaits},
	{"a worker that ends again and again", []string{"WarmpathWorkerRestarts main"}, restarts},
	{"a queue that never empties", []string{"WarmpathQueueFilling main"}, queued},
	{"KV events that are cut", []string{"WarmpathKVEventsStale main"}, eventsCut},
	{"a cache that keeps nothing", []string{"WarmpathBelievesTooMuch main"}, forgets},
	{"no Redis, no room for clients, no room on the disk", []string{"WarmpathStoreDown", "WarmpathClientsRefused", "WarmpathAccessLogLost"}, noRoom},
	{"a certificate that ends, and a worse one", []string{"WarmpathCertificateEnds", "WarmpathCertificateRefused"}, ending},
	{"a state file that cannot be written", []string{"WarmpathStateFileFailing"}, noFolder},
}

// TestEveryAlertStirs: a real Prometheus scrapes daemons in each of which something is wrong, and each alert sees that.
// Which alert stays silent while all is well is TestDashboardAndAlertsUnderLoad's.
func TestEveryAlertStirs(t *testing.T) {
	t.Parallel()
	needTool(t, "prometheus")
	var scrapes []string
	for _, b := range brokenDaemons {
		scrapes = append(scrapes, b.begin(t))
	}
	p := startPrometheus(t, scrapes...)
	provoked := slices.Clone(afterLoad)
	var missing []string
	look := func() bool {
		stirring := p.stirring()
		missing = nil
		for i, b := range brokenDaemons {
			for _, a := range b.alerts {
				name, pool, _ := strings.Cut(a, " ")
				provoked = append(provoked, name)
				if !slices.ContainsFunc(stirring, func(l map[string]string) bool {
					return l["alertname"] == name && l["instance"] == scrapes[i] && l["pool"] == pool
				}) {
					missing = append(missing, b.what+": "+a)
				}
			}
		}
		return len(missing) == 0
	}
	for end := time.Now().Add(80 * time.Second); !look(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("these alerts do not stir: %q", missing)
		}
	}
	rules, err := os.ReadFile(filepath.Join(deployed, "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !slices.Contains(provoked, a[1]) {
			t.Errorf("no daemon provokes %s", a[1])
		}
	}
}

// asks sends requests one after another until the test ends; what becomes of them is nobody's business. {n} in the body
// is another number in each.
func asks(t *testing.T, r *running, clients int, body string) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var sent atomic.Int64
	client := &http.Client{Transport: &http.Transport{}}
	for range clients {
		running.Go(func() {
			for ctx.Err() == nil {
				text := strings.ReplaceAll(body, "{n}", fmt.Sprint(sent.Add(1)))
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr()+"/v1/completions", strings.NewReader(text))
				req.Header.Set("Content-Type", "application/json")
				if resp, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait(); client.CloseIdleConnections() })
}

// keyAtLimit has a client that sends more than its key may.
func keyAtLimit(t *testing.T) string {
	r := start(t, limited(t, "team", "requests_per_minute = 1")+settings("roundrobin", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			r.as("team", "POST", "/v1/completions", `{"model":"sim","max_tokens":1,"prompt":"a"}`)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return r.AdminAddr()
}

// keyWithoutWorkers has a key with a worker of its own, which is down.
func keyWithoutWorkers(t *testing.T) string {
	text := settings("roundrobin", sims(t, 1, vllmsim.Config{}).URLs()[0], "http://"+porttest.Address(t))
	text = strings.Replace(text, "id = \"w2\"\n", "id = \"w2\"\nlabels = { team = \"a\" }\n", 1)
	return start(t, limited(t, "team", "workers = \"team=a\"")+text, 1).AdminAddr()
}

// keyWaits has a key whose requests wait for their limit.
func keyWaits(t *testing.T) string {
	r := start(t, limited(t, "team", "requests_per_minute = 20")+withPool(settings("roundrobin", sims(t, 1, vllmsim.Config{}).URLs()...), "max_in_flight = 8"), 1)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
				r.as("team", "POST", "/v1/completions", `{"model":"sim","max_tokens":1,"prompt":"a"}`)
			}
		})
	}
	t.Cleanup(func() { cancel(); r.Close(); running.Wait() })
	return r.AdminAddr()
}

// restarts has a worker that ends every few seconds.
func restarts(t *testing.T) string {
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("roundrobin", f.URLs()...), 2)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(2 * time.Second) {
			_ = f[0].Restart()
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return r.AdminAddr()
}

// prompted is a request with a prompt of many blocks.
func prompted(more string) string {
	return fmt.Sprintf(`{"model":"sim","max_tokens":2,"prompt":%q%s}`, strings.Repeat("The tide comes in twice a day. ", 100), more)
}

func nobody(t *testing.T) string { return porttest.Address(t) }

func poolsThatCannotServe(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "workers.toml")
	write(t, file, "workers = []\n")
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&b, "unfit", "prefixaware", "qwen", sims(t, 1, vllmsim.Config{}).URLs()...)
	addPool(&b, "nobody", "prefixaware", "gemma")
	fmt.Fprintf(&b, "workers_file = %q\n", file)
	return start(t, b.String(), 1).AdminAddr()
}

// resets has a worker that closes two of three connections without an answer. The first may be a kept connection that had
// ended, so the request is sent there again, on a new one. A worker that closes all is soon left alone.
func resets(t *testing.T) string {
	var n atomic.Int64
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		if n.Add(1)%3 != 0 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(rw, completion)
	})
	r := start(t, settings("roundrobin", append(sims(t, 1, vllmsim.Config{}).URLs(), w.URL)...), 2)
	asks(t, r, 2, prompted(""))
	return r.AdminAddr()
}

// routedBy has four workers and a module of testdata: trap.wat traps for no fewer, as it would not pass its checks at the load.
func routedBy(module string) func(t *testing.T) string {
	return func(t *testing.T) string {
		wasm, err := wasmtest.File("../testdata/modules/" + module)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "mine.wasm")
		write(t, file, string(wasm))
		toml := settings("mine", sims(t, 4, vllmsim.Config{}).URLs()...) + fmt.Sprintf("[strategies.mine]\npath = %q\n", file)
		r := start(t, toml, 4)
		asks(t, r, 2, prompted(""))
		return r.AdminAddr()
	}
}

// streams answers with a stream of one token after a while, or when the client has left.
func streams(after time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server looks out for the client's end only then
		select {
		case <-time.After(after):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`+
			"\n\ndata: [DONE]\n\n")
	}
}

func slow(t *testing.T) string {
	w := fakeWorker(t, streams(11*time.Second))
	r := start(t, withPool(settings("prefixaware", w.URL), "prefill_tokens_per_second = 10"), 1)
	for i := range 8 { // some end within each second, and none finds the prompt of another
		asks(t, r, 1, strings.Replace(prompted(`,"stream":true`), `"prompt":"`, fmt.Sprintf(`"prompt":"%d {n} `, i), 1))
		time.Sleep(300 * time.Millisecond)
	}
	return r.AdminAddr()
}

// behind has a prefiller that takes longer for a prompt than another one takes to come.
func behind(t *testing.T) string {
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(11 * time.Second):
		case <-r.Context().Done():
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, completion)
	})
	r := start(t, split(w.URL, sims(t, 1, vllmsim.Config{}).URLs()[0], "prefill_tokens_per_second = 10"), 2)
	for i := range 8 {
		asks(t, r, 1, strings.Replace(prompted(""), `"prompt":"`, fmt.Sprintf(`"prompt":"%d {n} `, i), 1))
	}
	return r.AdminAddr()
}

// gone has a decoder that computes its prompts itself, as no prefiller is there.
func gone(t *testing.T) string {
	r := start(t, split("http://"+porttest.Address(t), sims(t, 1, vllmsim.Config{}).URLs()[0], ""), 1)
	asks(t, r, 2, strings.Replace(prompted(""), `"prompt":"`, `"prompt":"{n} `, 1))
	return r.AdminAddr()
}

// split is a pool of a prefiller and a decoder, with more keys of it.
func split(prefiller, decoder, keys string) string {
	text := withPool(settings("prefixaware", prefiller, decoder), keys+
		"\ndisaggregation = { connector = \"lmcache\", rule = \"threshold\", threshold = 100 }")
	return strings.Replace(text, "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1)
}

func full(t *testing.T) string {
	w := fakeWorker(t, streams(time.Minute))
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.Config.Handler.ServeHTTP(rw, r)
			return
		}
		io.WriteString(rw, "vllm:kv_cache_usage_perc 0.99\nvllm:num_requests_waiting 7\nvllm:num_requests_running 1\n")
	}))
	t.Cleanup(s.Close)
	r := start(t, withPool(settings("prefixaware", s.URL), "max_in_flight = 1\nqueue.max_requests = 0"), 1)
	asks(t, r, 3, prompted(`,"stream":true`))
	return r.AdminAddr()
}

func queued(t *testing.T) string {
	r := start(t, withPool(settings("prefixaware", fakeWorker(t, streams(time.Minute)).URL), "max_in_flight = 1"), 1)
	asks(t, r, 3, prompted(`,"stream":true`))
	return r.AdminAddr()
}

func eventsCut(t *testing.T) string {
	f := sims(t, 1, published(events.Map))
	r := start(t, poolKeys(settings("kvaware", f.URLs()...), "kv_events = \"auto\"\n"), 1)
	r.awaitLive(1)
	if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultEventsCut}); err != nil {
		t.Fatal(err)
	}
	return r.AdminAddr()
}

// forgets has a worker that has nothing cached of a prompt that it has answered a moment ago.
func forgets(t *testing.T) string {
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":700,"completion_tokens":1,"total_tokens":701,"prompt_tokens_details":{"cached_tokens":0}}}`)
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	asks(t, r, 2, prompted(""))
	return r.AdminAddr()
}

// noRoom has one connection for three clients, a Redis that is not there, and an access log on a disk that is full.
func noRoom(t *testing.T) string {
	toml := withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...),
		"max_connections = 1\naccess_log = \"/dev/full\"") + fmt.Sprintf("[cache]\nredis = \"redis://%s\"\n", porttest.Address(t))
	r := start(t, toml, 1)
	asks(t, r, 3, prompted(""))
	return r.AdminAddr()
}

// noFolder has lost the folder of its state file.
func noFolder(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	toml := withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("state_file = %q", filepath.Join(dir, "router")))
	r := start(t, toml, 1)
	eventually(t, "the folder is gone", func() bool { return os.RemoveAll(dir) == nil }) // the daemon may write to it
	r.memory.Save()
	return r.AdminAddr()
}

// ending is a daemon whose certificate ends in a week, and whose files hold one that has ended.
func ending(t *testing.T) string {
	const day = 24 * time.Hour
	dir := t.TempDir()
	pair := certtest.Dated(t, dir, "front", "localhost", certtest.Dates{-day, 7 * day})
	r := start(t, withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q", pair.Cert, pair.Key)), 1)
	certtest.Dated(t, dir, "front", "localhost", certtest.Dates{-2 * day, -day})
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	return r.AdminAddr()
}
