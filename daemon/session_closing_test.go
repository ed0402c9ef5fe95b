package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/sessionapi"
)

// holder is a worker that knows of no session ids, but keeps what an opening brings under a name of the application's.
type holder struct {
	mu     sync.Mutex // guards what follows
	held   []string
	closes []string // the bodies
	refuse bool
}

func (h *holder) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Header.Get(sessionID) != "" {
		http.Error(w, "an id that this worker never gave", 400)
		return
	}
	var said struct {
		RequestType   string `json:"requestType"`
		ExtSessionID  string `json:"extSessionID"`
		StatefulStart bool   `json:"start"`
	}
	_ = json.Unmarshal(body, &said)
	switch {
	case said.StatefulStart:
		h.held = append(h.held, said.ExtSessionID)
	case strings.HasPrefix(said.RequestType, "CLOSE"):
		h.closes = append(h.closes, string(body))
		if h.refuse {
			http.Error(w, "no", 400)
			return
		}
		h.held = slices.DeleteFunc(h.held, func(s string) bool { return s == said.ExtSessionID })
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, completion)
}

func (h *holder) state() (held, closes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held), len(h.closes)
}

// The worker that took an opening in hears of the session's end, though the router named it.
func TestACloseReachesWhoHeardTheOpening(t *testing.T) {
	var holders [3]holder
	var urls []string
	for i := range holders {
		urls = append(urls, fakeWorker(t, holders[i].serve).URL)
	}
	r := start(t, settings("roundrobin", urls...), 3)
	total := func() (held, closes int) {
		for i := range holders {
			a, b := holders[i].state()
			held, closes = held+a, closes+b
		}
		return held, closes
	}
	names := []string{"a", "b", "c", "d"}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i], _ = r.opens(invoke, `{"start":true,"extSessionID":"`+name+`"}`, sessionID, "NEW_SESSION")
		if !session.Minted(ids[i]) {
			t.Fatalf("id %s; want one of the router's", ids[i])
		}
	}
	if held, _ := total(); held != 4 {
		t.Fatalf("%d payloads are held", held)
	}
	end := func(i int, body string) {
		t.Helper()
		if s := r.do("POST", invoke, body, sessionID, ids[i]); s.status != 200 || s.header.Get(closedID) != ids[i] {
			t.Errorf("close: %d %v %s", s.status, s.header, s.body)
		}
		r.do("POST", invoke, hello, sessionID, ids[i]).refusal(t, "use after close", 400, "ValidationError", "closed")
	}
	end(0, `{"requestType":"CLOSE","extSessionID":"a"}`)
	end(1, `{"requestType":"CLOSE_SESSION","extSessionID":"b"}`)
	if held, closes := total(); held != 2 || closes != 2 {
		t.Errorf("%d payloads are held, %d closes came; want 2, 2", held, closes)
	}
	for i := range holders {
		holders[i].mu.Lock()
		holders[i].refuse = true
		holders[i].mu.Unlock()
	}
	end(2, closeBody) // a refusal changes nothing
	if s := r.do("DELETE", "/sessions/"+ids[3], ""); s.status != 204 {
		t.Errorf("DELETE: %d %s", s.status, s.body)
	}
	if _, closes := total(); closes != 4 {
		t.Errorf("%d closes came; want 4", closes)
	}
	if n := r.live(); n != 0 {
		t.Errorf("%d bindings left", n)
	}
}

// Who never heard of a session hears nothing of its end.
func TestACloseReachesNobodyElse(t *testing.T) {
	var h holder
	r := start(t, withPool(settings("roundrobin", fakeWorker(t, h.serve).URL), `worker_sessions = "off"`), 1)
	var made sessionapi.Session
	_ = json.Unmarshal([]byte(r.do("POST", "/sessions", `{"model":"sim"}`).body), &made)
	inBody, _ := r.opens(invoke, openBody) // the router answers that itself
	if s := r.do("DELETE", "/sessions/"+made.ID, ""); s.status != 204 {
		t.Errorf("DELETE: %d %s", s.status, s.body)
	}
	if s := r.do("POST", invoke, closeBody, sessionID, inBody); s.status != 200 || s.header.Get(closedID) != inBody {
		t.Errorf("close: %d %s", s.status, s.body)
	}
	if _, closes := h.state(); closes != 0 {
		t.Errorf("%d closes came", closes)
	}
}
