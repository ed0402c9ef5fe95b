package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/register"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// registers are settings of a pool whose workers all register, with the operator's token, and a state file.
func registers(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), adminToken)
	return withServer(settings("prefixaware")+"workers = []\n", fmt.Sprintf("admin_token_file = %q\nstate_file = %q",
		filepath.Join(dir, "token"), filepath.Join(dir, "state")))
}

// order sends a request with the operator's token, and fails unless it gets the status.
func (r *running) order(status int, method, path, body string) string {
	r.t.Helper()
	s := r.admin(method, path, body)
	if s.status != status || s.err != nil {
		r.t.Errorf("%s %s %s: %d %s %v; want %d", method, path, body, s.status, s.body, s.err, status)
	}
	return s.body
}

const registerPath = "/api/v1/pools/main/workers"

// TestWorkersRegister: a pool begins without workers, and serves with those that register, over a reload and a restart.
func TestWorkersRegister(t *testing.T) {
	t.Parallel()
	toml := registers(t)
	f := sims(t, 3, vllmsim.Config{})
	r := start(t, toml, 0)
	if s := r.do("POST", "/v1/completions", hello); s.status != 503 {
		t.Errorf("without a worker: %d %s; want 503", s.status, s.body)
	}
	body := fmt.Sprintf(`{"url": %q, "id": "one", "labels": {"tier": "rl"}, "weight": 2, "ttl": 90}`, f.URLs()[0])
	var w operator.PoolWorker
	if err := json.Unmarshal([]byte(r.order(200, "POST", registerPath, body)), &w); err != nil || w.ID != "one" || w.TTL != 90 ||
		w.Origin != "registered" || w.Warning != "" {
		t.Errorf("%+v, %v", w, err)
	}
	r.waitUp(1)
	r.order(200, "POST", registerPath, body) // renews it
	if s := r.do("POST", "/v1/completions", hello); s.status != 200 {
		t.Errorf("with a worker: %d %s", s.status, s.body)
	}
	if is := r.describe()[0].Workers[0]; is.Origin != "registered" || is.Labels["tier"] != "rl" {
		t.Errorf("it is shown as %+v", is)
	}
	r.order(200, "POST", "/workers", fmt.Sprintf(`{"url": %q, "worker_type": "regular", "api_key": "x"}`, f.URLs()[1]))
	r.order(200, "POST", "/add_worker?url="+url.QueryEscape(f.URLs()[2]), "")
	r.waitUp(3)
	write(t, r.file, strings.Replace(toml, `strategy = "prefixaware"`, `strategy = "roundrobin"`, 1))
	if err := r.Reload(); err != nil || len(r.describe()[0].Workers) != 3 {
		t.Errorf("after a reload: %d workers, %v; want 3", len(r.describe()[0].Workers), err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, toml, 3)
	var list struct{ Workers []struct{ ID, URL string } }
	if err := json.Unmarshal([]byte(r.order(200, "GET", "/workers", "")), &list); err != nil || len(list.Workers) != 3 {
		t.Fatalf("%+v, %v; want 3 workers", list, err)
	}
	r.order(200, "DELETE", "/workers/"+list.Workers[1].ID, "")
	r.order(200, "POST", "/remove_worker?url="+url.QueryEscape(f.URLs()[2]), "")
	r.order(200, "DELETE", registerPath+"/one", "")
	r.order(404, "DELETE", registerPath+"/one", "")
	if got := r.order(200, "GET", "/list_workers", ""); got != `{"urls":[]}` {
		t.Errorf("after all have gone: %s", got)
	}
}

// TestRegistrationsThatAreRefused: each says what is wrong, and changes nothing.
func TestRegistrationsThatAreRefused(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(strings.Replace(registers(t), `["*"]`, `["sim"]`, 1))
	addPool(&b, "other", "roundrobin", "none", "http://127.0.0.1:1")
	r := start(t, b.String(), 0)
	f := func(status int, body, want string) {
		t.Helper()
		if got := r.order(status, "POST", registerPath, body); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", body, got, want)
		}
	}
	f(400, ``, "send")
	f(400, `[1]`, "send")
	f(400, `{"id": "x"}`, "url: ")
	f(400, `{"url": "ftp://a"}`, "url: ")
	f(400, `{"url": "http://a:1/v1"}`, "leave /v1 out")
	f(400, `{"url": "http://a:1", "wieght": 2}`, "weight")
	f(400, `{"url": "http://a:1", "weight": -1}`, "weight: ")
	f(400, `{"url": "http://a:1", "weight": null, "id": "a b"}`, "id: ")
	f(400, `{"url": "http://a:1", "labels": {"x": {"y": 1}}}`, "labels")
	f(400, `{"url": "http://a:1", "role": "prefill"}`, "role: ")
	for _, ttl := range []string{`"soon"`, `-1`, `0`, `"1ns"`, `1e99`, `true`, `[]`} {
		f(400, `{"url": "http://a:1", "ttl": `+ttl+`}`, "ttl: ")
	}
	f(200, `{"url": "http://127.0.0.1:2", "id": "a", "ttl": "1m"}`, `"ttl_seconds":60`)
	f(409, `{"url": "http://127.0.0.1:2", "id": "a", "ttl": "2m"}`, "another ttl;")
	f(409, `{"url": "http://127.0.0.1:3", "id": "a", "weight": 3, "ttl": "1m"}`, "another url, metrics_url, weight;")
	f(409, `{"url": "http://127.0.0.1:2/", "id": "b"}`, "worker a of pool main has it already")
	f(409, `{"url": "http://127.0.0.1:1"}`, "worker w1 of pool other has it already")
	r.order(404, "POST", "/api/v1/pools/none/workers", `{"url": "http://a:1"}`)
	r.order(409, "DELETE", "/api/v1/pools/other/workers/w1", "")
	r.order(400, "POST", "/workers", `{"url": "http://a:1"}`) // of two pools
	for _, form := range [][2]string{{"POST", registerPath}, {"DELETE", registerPath + "/a"}, {"POST", "/workers"}, {"GET", "/workers"}, {"POST", "/add_worker"}} {
		if s := do(t, form[0], "http://"+r.AdminAddr()+form[1], "{}"); s.status != 401 {
			t.Errorf("%v without the token: %d", form, s.status)
		}
	}
	if got := len(r.describe()[0].Workers); got != 1 {
		t.Errorf("%d workers; want the one", got)
	}
}

// TestRegistrationsAreBounded: a program that registers without an end gets 507, and those before stay.
func TestRegistrationsAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, strings.Replace(registers(t), `health_interval = "100ms"`, `health_interval = "1m"`, 1), 0)
	process := process{r.Daemon}
	for i := range register.Most { // in the process itself: a thousand requests would take most of the time
		keys := map[string]any{"url": fmt.Sprintf("http://127.0.0.1:2/w%d", i)}
		if _, err := r.register.Add(process, "main", keys, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.order(507, "POST", registerPath, `{"url": "http://127.0.0.1:2/more"}`); !strings.Contains(got, "1024 registered workers") {
		t.Error(got)
	}
	r.order(200, "POST", registerPath, `{"url": "http://127.0.0.1:2/w7"}`)
}

// TestARegistrationEndsUnderAStream: without renewal the worker gets no new request, and the stream runs to its end.
func TestARegistrationEndsUnderAStream(t *testing.T) {
	t.Parallel()
	next := make(chan bool)
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/v1/completions" {
			io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\"x\"}]}\n\n")
		w.(http.Flusher).Flush()
		<-next
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\"y\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(worker.Close)
	r := start(t, registers(t), 0)
	r.order(200, "POST", registerPath, fmt.Sprintf(`{"url": %q, "ttl": "2s"}`, worker.URL))
	r.waitUp(1)
	ended := make(chan seen)
	go func() {
		ended <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"hi","stream":true,"max_tokens":9}`)
	}()
	eventually(t, "the registration ends", func() bool { return len(r.describe()[0].Workers) == 0 })
	if s := r.do("POST", "/v1/completions", hello); s.status != 503 {
		t.Errorf("a new request: %d %s; want 503", s.status, s.body)
	}
	next <- true
	if s := <-ended; s.status != 200 || !strings.Contains(s.body, "[DONE]") {
		t.Errorf("the stream: %d %s", s.status, s.body)
	}
}

// TestNoRegistrationIsLostInAnUpgrade: while a new process has read the file, none is taken that it would not have.
func TestNoRegistrationIsLostInAnUpgrade(t *testing.T) {
	t.Parallel()
	r := start(t, registers(t), 0)
	r.order(200, "POST", registerPath, `{"url": "http://127.0.0.1:2", "id": "a", "ttl": 1}`)
	release := process{r.Daemon}.Hold()
	r.order(503, "POST", registerPath, `{"url": "http://127.0.0.1:3", "id": "b"}`)
	r.order(503, "DELETE", registerPath+"/a", "")
	r.register.Expire(process{r.Daemon}, time.Now().Add(time.Hour))
	if got := len(register.Open(r.state.Load().conf, r.log).Entries()); got != 1 || len(r.register.Entries()) != 1 {
		t.Errorf("the file has %d registrations, and the process %d; want 1", got, len(r.register.Entries()))
	}
	release()
	r.order(200, "POST", registerPath, `{"url": "http://127.0.0.1:3", "id": "b"}`)
}

// TestARegisteredWorkerThatTheFileHas: a reload brings its id with another url, or its url with another id. Its next
// registration says so, and it does not serve.
func TestARegisteredWorkerThatTheFileHas(t *testing.T) {
	t.Parallel()
	toml, urls := registers(t), sims(t, 3, vllmsim.Config{}).URLs()
	r := start(t, toml, 0)
	body := func(i int) string { return fmt.Sprintf(`{"url": %q, "id": "r%d", "ttl": "60s"}`, urls[i], i) }
	for i := range 2 {
		r.order(200, "POST", registerPath, body(i))
	}
	r.waitUp(2)
	r.reloadWith(strings.Replace(toml, "workers = []\n", fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"r0\"\n[[pools.workers]]\n"+
		"url = %q\nid = \"other\"\n", urls[2], urls[1]), 1))
	for i, want := range []string{"id: another worker", "worker other of pool main has it already"} {
		if got := r.order(409, "POST", registerPath, body(i)); !strings.Contains(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
	r.reloadWith(toml) // the file has them no more
	for i := range 2 {
		if got := r.order(200, "POST", registerPath, body(i)); !strings.Contains(got, `"origin":"registered"`) {
			t.Errorf("%s; want it registered", got)
		}
	}
	r.waitUp(2)
}

// TestRegisteredOutsideOfTheSubset: workers that this router does not use are answered for, listed and removed too.
func TestRegisteredOutsideOfTheSubset(t *testing.T) {
	t.Parallel()
	urls := sims(t, 5, vllmsim.Config{}).URLs()
	r := start(t, withSubset(registers(t), "a", 2), 0)
	for i, u := range urls {
		if got := r.order(200, "POST", registerPath, fmt.Sprintf(`{"url": %q, "id": "r%d"}`, u, i)); !strings.Contains(got, u) {
			t.Errorf("the answer to a registration: %s", got)
		}
	}
	var list []operator.PoolWorker
	if err := json.Unmarshal([]byte(r.order(200, "GET", registerPath, "")), &list); err != nil || len(list) != len(urls) ||
		list[4].State != operator.Outside || list[4].Origin != "registered" {
		t.Errorf("%v %+v", err, list)
	}
	for _, u := range urls {
		r.order(200, "POST", "/remove_worker?url="+url.QueryEscape(u), "")
	}
}
