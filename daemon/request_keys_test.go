package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// keysFor are [[keys]] tables: alice may use every model, bob the model sim, carol all of org.
func keysFor(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	toml := ""
	for _, k := range [][2]string{{"alice", ""}, {"bob", `models = ["sim"]`}, {"carol", `models = ["org/*"]`}} {
		write(t, filepath.Join(dir, k[0]), k[0]+"-secret")
		toml += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n%s\n", k[0], filepath.Join(dir, k[0]), k[1])
	}
	return toml
}

// as is a request with a key.
func (r *running) as(who, method, path, body string, header ...string) seen {
	r.t.Helper()
	return r.do(method, path, body, append([]string{"X-Api-Key", who + "-secret"}, header...)...)
}

// witness is a worker that lists models and notes what else it is asked.
type witness struct {
	mu    sync.Mutex // guards asked
	asked []string
	url   string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.RequestURI {
		case "/health", "/metrics", "/kv_event_sources", "/weight_info":
			return
		case "/v1/models":
			io.WriteString(rw, `{"object":"list","data":[{"id":"sim","object":"model","created":1700000000},{"id":"secret"},{"id":"org/name"}]}`)
			return
		}
		b, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.asked = append(w.asked, fmt.Sprintf("%s %s %.200s", r.Method, r.RequestURI, b))
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"id":"resp_x","object":"response"}`)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// since returns what the worker was asked since the last call.
func (w *witness) since() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// code is an answer's error.code.
func (s seen) code() string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(s.body), &e)
	return e.Error.Code
}

// TestAKeysModelsHold: nothing of what a worker may read otherwise than we do reaches it, and the words say what is
// wrong.
func TestAKeysModelsHold(t *testing.T) {
	w := newWitness(t)
	r := start(t, keysFor(t)+withServer(settings("roundrobin", w.url), "buffer_body_bytes = 65536\noverflow_bytes = 0"), 1)
	f := func(status int, code, method, path, body string, header ...string) {
		t.Helper()
		w.since()
		s := r.as("bob", method, path, body, header...)
		if s.status != status || s.code() != code || (len(w.since()) > 0) != (status == 200) {
			t.Errorf("%s %s %.150q %q: %d %s; want %d %s, and the worker asked only for 200", method, path, body, header, s.status, s.body, status, code)
		}
	}
	const chat, own = "/v1/chat/completions", `{"model":"sim"}`
	f(200, "", "POST", chat, own)
	f(403, "model_not_found", "POST", chat, `{"model":"secret"}`)
	f(400, "invalid_json", "POST", chat, `{"model":"sim", `)
	f(400, "missing_model", "POST", chat, `{}`)
	f(400, "missing_model", "POST", chat, ``)
	f(400, "missing_model", "POST", chat, `{"model":5}`)
	f(400, "missing_model", "POST", chat, `{"model":["sim"]}`)
	f(400, "missing_model", "GET", "/v1/files", ``)
	f(413, "body_too_large", "POST", chat, `{"model":"sim","x":"`+strings.Repeat("x", 70_000)+`"}`)
	f(400, "ambiguous_model", "POST", chat, `{"model":"secret","model":"sim"}`)
	f(400, "ambiguous_model", "POST", chat, `{"model":"sim","MODEL":"secret"}`)
	f(400, "ambiguous_model", "POST", chat, `{"Model":"secret"}`)
	f(403, "model_not_found", "POST", chat, `{"model":"sim","mod\u0065l":"secret"}`)
	f(403, "model_not_found", "POST", chat, `{"mod\u0065l":"secret"}`)
	f(415, "unsupported_media_type", "POST", chat, `{"model":"sim","x":"&model=secret&"}`, "Content-Type", "application/x-www-form-urlencoded")
	f(415, "unsupported_media_type", "POST", chat, own, "Content-Type", "multipart/mixed; boundary=b")
	f(415, "unsupported_media_type", "POST", chat, `{"model":"sim","x":"+ACI-,+ACI-model+ACI-:+ACI-secret"}`, "Content-Type", "application/json; charset=utf-7")
	f(200, "", "POST", chat, own, "Content-Type", `Application/JSON; charset="UTF-8"`)
	f(200, "", "POST", chat, own, "Content-Type", "text/plain")

	f(403, "adapter_not_allowed", "POST", "/v1/load_lora_adapter", own)
	f(403, "adapter_not_allowed", "POST", "/v1/load_lora_adapte%72", own)
	f(403, "adapter_not_allowed", "POST", "/v1/%6coad_lora_adapter", own)
	f(403, "adapter_not_allowed", "POST", "/v1/load_lora_adapter/", own)
	f(403, "adapter_not_allowed", "POST", "/v1/LOAD_LORA_ADAPTER", own)
	f(403, "adapter_not_allowed", "POST", "/v1/unload_lora_adapte%72", own)

	f(200, "", "POST", "/invocations", own, "X-Amzn-SageMaker-Adapter-Identifier", "sim")
	f(403, "model_not_found", "POST", "/invocations", `{"model":"secret"}`, "X-Amzn-SageMaker-Adapter-Identifier", "sim")
	f(403, "model_not_found", "POST", "/invocations", own, "x-amzn-sagemaker-adapter-identifier", "secret")
	f(403, "model_not_found", "POST", chat, own, "X-Amzn-SageMaker-Adapter-Identifier", "secret")
	f(400, "missing_model", "POST", "/invocations", `{}`, "X-Amzn-SageMaker-Adapter-Identifier", "sim")

	f(400, "invalid_url", "POST", "/v1/responses/..%2fchat%2fcompletions", `{"model":"secret"}`)
	f(400, "missing_model", "POST", "/v1/responses/x", ``)
	f(404, "response_not_found", "POST", "/v1/responses/x/cancel", `{"model":"secret"}`)
}

// TestFormsOfAKeyForSomeModels: the ways of a review to have vLLM's form reader find another model than ours.
func TestFormsOfAKeyForSomeModels(t *testing.T) {
	w := newWitness(t)
	r := start(t, keysFor(t)+settings("roundrobin", w.url), 1)
	const path, form = "/v1/audio/transcriptions", "multipart/form-data; boundary=b1"
	part := func(head, value string) string { return "--b1\r\n" + head + "\r\n\r\n" + value + "\r\n" }
	const named = `Content-Disposition: form-data; name=`
	honest := part(named+`"model"`, "sim") + part(named+`"file"; filename="a.wav"`, "RIFF")
	for what, more := range map[string]string{
		"two names":             part(named+`"x"; name="model"`, "secret"),
		"two dispositions":      part(named+"\"x\"\r\n"+named+`"model"`, "secret"),
		"an empty parameter":    part(named+`"model"; =`, "secret"),
		"a broken parameter":    part(named+`"model"; a b=c`, "secret"),
		"no form-data":          part(`Content-Disposition: form data; name="model"`, "secret"),
		"a header of 12 KB":     part(strings.Repeat("X: "+strings.Repeat("x", 3000)+"\r\n", 4)+named+`"model"`, "secret"),
		"300 parts":             strings.Repeat(part(`Content-Disposition: x; name="f"`, "x"), 300) + part(named+`"model"`, "secret"),
		"a value over a bound":  part(named+`"model"`, "secret"+strings.Repeat(" ", 2000)),
		"a second model":        part(named+`"model"`, "secret"),
		"an unquoted second":    part(named+`model`, "secret"),
		"no closing boundary":   "",
		"a line feed boundary":  "--b1\n" + named + "\"model\"\n\nsecret\r\n",
		"a part that goes on":   "--b1\r\n" + named + "\"model\"\r\n\r\nsecret",
		"a model in a file":     part(named+`"model"; filename="x"`, "secret"),
		"a model by its base64": part(named+"\"x\"\r\nContent-Transfer-Encoding: base64", "c2VjcmV0"),
	} {
		end := "--b1--\r\n"
		if more == "" {
			end = ""
		}
		s := r.as("bob", "POST", path, honest+more+end, "Content-Type", form)
		if asked := w.since(); s.status != 400 || s.code() != "ambiguous_form" || len(asked) > 0 {
			t.Errorf("%s: %d %s, and the worker was asked %.300q", what, s.status, s.body, asked)
		}
		if s := r.as("alice", "POST", path, honest+more+end, "Content-Type", form); s.status != 200 || len(w.since()) != 1 {
			t.Errorf("%s with a key for all models: %d %s", what, s.status, s.body)
		}
	}
	if s := r.as("bob", "POST", path, honest+"--b1--\r\n", "Content-Type", form); s.status != 200 || len(w.since()) != 1 {
		t.Errorf("an honest form: %d %s", s.status, s.body)
	}
	if s := r.as("bob", "POST", path, part(named+`"model"`, "secret")+"--b1--\r\n", "Content-Type", form); s.status != 403 || len(w.since()) > 0 {
		t.Errorf("a form with another model: %d %s", s.status, s.body)
	}
	if s := r.as("bob", "POST", path, part(named+`"file"; filename="a.wav"`, "RIFF")+"--b1--\r\n", "Content-Type", form); s.code() != "missing_model" {
		t.Errorf("a form without a model: %d %s", s.status, s.body)
	}
}

// TestWithoutKeysTheWorkerTells: malformed bodies and odd forms go on.
func TestWithoutKeysTheWorkerTells(t *testing.T) {
	w := newWitness(t)
	r := start(t, settings("roundrobin", w.url), 1)
	for _, body := range []string{`{"model":"sim", `, `{}`, `{"model":5}`, ``, `{"model":"a","model":"sim"}`} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
			if s := r.do("POST", path, body); s.status != 200 || len(w.since()) != 1 {
				t.Errorf("%s %s: %d %s", path, body, s.status, s.body)
			}
		}
	}
	if s := r.do("GET", "/v1/responses/resp_of_anybody", ""); s.status != 200 || len(w.since()) != 1 {
		t.Errorf("a response of before a restart: %d %s", s.status, s.body)
	}
}

// TestRefusedNamesBecomeNoLabels: a key that is refused cannot fill the thousand values that the label model has.
func TestRefusedNamesBecomeNoLabels(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{Models: []string{"sim", "secret"}})
	r := start(t, keysFor(t)+settings("roundrobin", f.URLs()...), 1)
	for i := range 1100 {
		if s := r.as("bob", "POST", "/v1/completions", fmt.Sprintf(`{"model":"made-up-%d","prompt":"x"}`, i)); s.status != 403 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	if s := r.as("bob", "POST", "/v1/completions", hello); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	page := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body
	if strings.Contains(page, "made-up") || strings.Contains(page, `model="other"`) || !strings.Contains(page, `model="sim"`) {
		lines := slices.DeleteFunc(strings.Split(page, "\n"), func(l string) bool { return !strings.HasPrefix(l, "warmpath_requests_total") })
		t.Errorf("%d series, the last %q", len(lines), lines[max(0, len(lines)-3):])
	}
}
