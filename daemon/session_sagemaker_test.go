package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// keeper is a worker that keeps sessions as vLLM does when they are switched on.
type keeper struct {
	mu     sync.Mutex // guards live
	live   map[string]bool
	name   string
	field  string // under which it names a new session
	life   time.Duration
	opened int
}

func newKeeper(t *testing.T, name string) (*keeper, string) {
	k := &keeper{live: map[string]bool{}, name: name, field: "x-amzn-sagemaker-new-session-id", life: time.Hour}
	return k, fakeWorker(t, k.serve).URL
}

func (k *keeper) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var said struct {
		RequestType string `json:"requestType"`
		Stream      bool
	}
	_ = json.Unmarshal(body, &said)
	id := r.Header.Get("X-Amzn-SageMaker-Session-Id")
	k.mu.Lock()
	defer k.mu.Unlock()
	w.Header().Set("Worker", k.name)
	fail := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"Bad Request","param":null,"code":%d}}`, text, status)
	}
	switch {
	case r.Header.Get("Authorization") != "":
		fail(401, "a foreign key")
	case said.RequestType == "NEW_SESSION":
		k.opened++
		id := fmt.Sprintf("%s-%d-%d", k.name, k.opened, time.Now().UnixNano())
		k.live[id] = true
		w.Header().Set(k.field, id+"; Expires="+time.Now().Add(k.life).UTC().Format("2006-01-02T15:04:05Z"))
		fmt.Fprintf(w, "Session %s created", id)
	case id != "" && !k.live[id]:
		fail(400, "Bad request: session not found: "+id)
	case said.RequestType == "CLOSE":
		delete(k.live, id)
		w.Header().Set("x-amzn-sagemaker-closed-session-id", id)
		fmt.Fprintf(w, "Session %s closed", id)
	case said.RequestType != "" && said.RequestType != "SESSION":
		fail(400, "requestType")
	case strings.Contains(string(body), "please fail"):
		fail(422, "it fails")
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"cmpl-1","object":"text_completion","session":%q,"model":"sim","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`, id)
	}
}

// plain is a worker whose sessions are switched off: it refuses all that tells of one.
func plain(t *testing.T, name string) string {
	return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Worker", name)
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("X-Amzn-SageMaker-Session-Id") != "" || strings.Contains(string(body), "requestType") {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"stateful sessions not enabled","type":"Bad Request","param":null,"code":400}}`)
			return
		}
		io.WriteString(w, completion)
	}).URL
}

const (
	invoke     = "/endpoints/main/invocations"
	sessionID  = "X-Amzn-SageMaker-Session-Id"
	newID      = "X-Amzn-SageMaker-New-Session-Id"
	closedID   = "X-Amzn-SageMaker-Closed-Session-Id"
	openBody   = `{"requestType":"NEW_SESSION"}`
	closeBody  = `{"requestType":"CLOSE_SESSION"}`
	sigV4      = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-west-1/sagemaker/aws4_request, SignedHeaders=host, Signature=00"
	errorField = "X-Amzn-Errortype"
)

// opens opens a session and returns its id and where.
func (r *running) opens(path, body string, header ...string) (id, at string) {
	r.t.Helper()
	s := r.do("POST", path, body, append([]string{"Authorization", sigV4}, header...)...)
	id, expires, ok := sagemaker.ParseNew(s.header.Get(newID))
	if s.status != 200 || !ok || expires.IsZero() {
		r.t.Fatalf("open: %d %q %s", s.status, s.header.Get(newID), s.body)
	}
	return id, s.header.Get("Worker")
}

// refusal checks SageMaker's shape of an error.
func (s seen) refusal(t *testing.T, what string, status int, kind, says string) {
	t.Helper()
	var body struct{ Message string }
	err := json.Unmarshal([]byte(s.body), &body)
	if s.status != status || s.header.Get(errorField) != kind || err != nil || !strings.Contains(body.Message, says) || s.header.Get("X-Amzn-Requestid") == "" {
		t.Errorf("%s: %d %s %v %s; want %d %s with %q", what, s.status, s.header.Get(errorField), s.header, s.body, status, kind, says)
	}
}

func (r *running) live() (n int) {
	for _, p := range r.state.Load().pools {
		for _, kinds := range p.route.Sessions.Live(time.Now()) {
			for _, k := range kinds {
				n += k
			}
		}
	}
	return n
}

func TestSessionsThatWorkersKeep(t *testing.T) {
	var urls []string
	keepers := map[string]*keeper{}
	for i := range 3 {
		k, url := newKeeper(t, fmt.Sprintf("w%d", i+1))
		if i == 1 {
			k.field = "X-Amzn-SageMaker-Session-Id"
		}
		keepers[k.name] = k
		urls = append(urls, url)
	}
	r := start(t, settings("roundrobin", urls...), 3)
	ids := map[string]string{}
	for range 9 {
		id, at := r.opens(invoke, openBody)
		ids[id] = at
	}
	for id, at := range ids {
		for range 3 {
			s := r.do("POST", invoke, hello, sessionID, id, "Authorization", sigV4)
			if s.status != 200 || s.header.Get("Worker") != at || !strings.Contains(s.body, `"session":"`+id) || s.header.Get("X-Amzn-Requestid") == "" {
				t.Fatalf("use of %s, opened at %s: %d %v %s", id, at, s.status, s.header, s.body)
			}
		}
		s := r.do("POST", invoke, closeBody, sessionID, id)
		if s.status != 200 || s.header.Get(closedID) != id || s.header.Get("Worker") != at {
			t.Fatalf("close: %d %v %s", s.status, s.header, s.body)
		}
		r.do("POST", invoke, hello, sessionID, id).refusal(t, "use after close", 400, "ValidationError", "closed")
		r.do("POST", invoke, closeBody, sessionID, id).refusal(t, "second close", 400, "ValidationError", "closed")
	}
	for name, k := range keepers {
		if k.opened != 3 || len(k.live) != 0 {
			t.Errorf("%s: %d opened, %d left", name, k.opened, len(k.live))
		}
	}
	if n := r.live(); n != 0 {
		t.Errorf("%d bindings left", n)
	}
}

func TestSessionsThatTheRouterKeeps(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"auto", "off"} {
		toml := settings("session", plain(t, "w1"), plain(t, "w2"), plain(t, "w3"))
		toml = strings.Replace(toml, "[[pools]]", "[[pools]]\nworker_sessions = \""+mode+"\"", 1)
		r := start(t, toml, 3)
		for _, path := range []string{invoke, "/invocations"} {
			for _, open := range [][]string{{openBody}, {hello, sessionID, "NEW_SESSION"}, {openBody, sessionID, "NEW_SESSION"}} {
				id, _ := r.opens(path, open[0], open[1:]...)
				if !session.Minted(id) {
					t.Errorf("%s: id %s", mode, id)
				}
				at := ""
				for range 4 {
					s := r.do("POST", path, hello, sessionID, id)
					if s.status != 200 || at != "" && at != s.header.Get("Worker") {
						t.Fatalf("%s %s: use: %d at %s; was at %s: %s", mode, path, s.status, s.header.Get("Worker"), at, s.body)
					}
					at = s.header.Get("Worker")
				}
				if now := r.at("X-Session-Id", id); now != at {
					t.Errorf("%s: as X-Session-Id at %s; want %s", mode, now, at)
				}
				s := r.do("POST", path, `{"requestType":"CLOSE"}`, sessionID, id)
				if s.status != 200 || s.header.Get(closedID) != id {
					t.Errorf("%s: close: %d %v %s", mode, s.status, s.header, s.body)
				}
			}
		}
		if n := r.live(); n != 0 {
			t.Errorf("%d bindings left", n)
		}
		_ = r.stop()
	}
}

func TestAttemptsOfOneCallOpenOneSession(t *testing.T) {
	k, url := newKeeper(t, "w1")
	r := start(t, settings("roundrobin", url), 1)
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			ids[i], _ = r.opens(invoke, openBody, "Amz-Sdk-Invocation-Id", "0f8fad5b-d9cb-469f-a165-70867728950e", "Amz-Sdk-Request", fmt.Sprintf("attempt=%d; max=8", i+1))
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several sessions: %v", ids)
		}
	}
	if k.opened != 1 {
		t.Errorf("%d sessions at the worker", k.opened)
	}
}

func TestBadCalls(t *testing.T) {
	_, url := newKeeper(t, "w1")
	r := start(t, settings("roundrobin", url), 1)
	foreign, _ := r.opens(invoke, openBody)
	stream := "/endpoints/main/invocations-response-stream"
	f := func(what, path, body, says string, header ...string) {
		t.Helper()
		r.do("POST", path, body, header...).refusal(t, what, 400, "ValidationError", says)
	}
	f("unknown", invoke, hello, "no such session", sessionID, "nobody")
	f("malformed", invoke, hello, "letters", sessionID, "a b")
	f("blank", invoke, hello, "blank", sessionID, "")
	f("blank in a stream", stream, hello, "blank", sessionID, "")
	f("blank with NEW_SESSION in the body", invoke, openBody, "blank", sessionID, "")
	if s := r.do("POST", "/invocations", hello, sessionID, ""); s.status != 400 || !strings.Contains(s.body, `"code":"session_malformed"`) {
		t.Errorf("blank on /invocations: %d %s", s.status, s.body)
	}
	f("too long", invoke, hello, "256", sessionID, strings.Repeat("a", 257))
	f("opening in a stream", stream, openBody, "not allowed")
	f("opening in a stream by header", stream, hello, "not allowed", sessionID, "NEW_SESSION")
	f("close without id", invoke, closeBody, "needs the id")
	f("close of nobody", invoke, closeBody, "no such session", sessionID, "nobody")
	f("endpoint's name", "/endpoints/my%20ep%2F%C3%BC/invocations", hello, "name")
	f("prefix id", invoke, hello, "Prefix-Aware", "X-Amzn-SageMaker-Prefix-Aware-Id", strings.Repeat("a", 65))
	for range 1000 {
		if s := r.do("POST", invoke, hello, sessionID, session.MintID()); s.status != 400 {
			t.Fatalf("a guessed id: %d", s.status)
		}
	}
	if n := r.live(); n != 1 {
		t.Errorf("%d bindings; want the one of %s", n, foreign)
	}
	r.do("POST", invoke, `{"model":"sim","prompt":"please fail"}`).refusal(t, "worker's 422", 424, "ModelError", "it fails")
	s := r.do("POST", "/invocations", hello, sessionID, "nobody")
	if s.status != 400 || !strings.Contains(s.body, `"code":"session_unknown"`) {
		t.Errorf("on /invocations: %d %s", s.status, s.body)
	}
	m := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "")
	if !strings.Contains(m.body, `warmpath_session_refusals_total{pool="main",reason="unknown"} 1003`) {
		t.Error("refusals are not counted")
	}
}

// TestNothingUnderEndpoints: below /endpoints/ the SDKs of AWS find their form of an error where nothing is, too. No
// worker is asked.
func TestNothingUnderEndpoints(t *testing.T) {
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/endpoints/") {
			t.Errorf("a worker was asked: %s %s", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(404)
		io.WriteString(w, `{"detail":"Not Found"}`)
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	defer r.stop()
	for _, path := range []string{invoke, invoke + "-response-stream", "/endpoints/main/other"} {
		r.do("GET", path, "").refusal(t, "GET "+path, 400, "ValidationError", "nothing at this URL")
		r.do("DELETE", path, "").refusal(t, "DELETE "+path, 400, "ValidationError", "nothing at this URL")
	}
	r.do("POST", "/endpoints/main/other", "{}").refusal(t, "POST", 400, "ValidationError", "nothing at this URL")
}

func TestStreamsAsEvents(t *testing.T) {
	events := "data: {\"id\":\"c\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"%s\",\"finish_reason\":null}]}\n\n"
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if a := r.Header.Get("Accept"); a != "text/event-stream" {
			t.Errorf("the worker got Accept: %q", a)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, events, "one")
		w.(http.Flusher).Flush()
		if strings.Contains(string(body), "break") {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"two\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	const path = "/endpoints/main/invocations-response-stream"
	s := r.do("POST", path, `{"model":"sim","prompt":"x","stream":true}`, "X-Amzn-SageMaker-Accept", "text/event-stream")
	if s.status != 200 || s.err != nil || s.header.Get("Content-Type") != sagemaker.StreamType ||
		s.header.Get("X-Amzn-Sagemaker-Content-Type") != "text/event-stream" || s.header.Get("X-Amzn-Requestid") == "" {
		t.Fatalf("%d %v %v", s.status, s.err, s.header)
	}
	for _, part := range []string{"PayloadPart", "one", "two", "[DONE]"} {
		if !strings.Contains(s.body, part) {
			t.Errorf("no %q in %q", part, s.body)
		}
	}
	s = r.do("POST", path, `{"model":"sim","prompt":"break","stream":true}`, "X-Amzn-SageMaker-Accept", "text/event-stream")
	if s.err != nil || !strings.Contains(s.body, "ModelStreamError") || !strings.Contains(s.body, "StreamBroken") || strings.Contains(s.body, "data: {\"error") {
		t.Errorf("a worker that breaks off: %v %q", s.err, s.body)
	}
}
