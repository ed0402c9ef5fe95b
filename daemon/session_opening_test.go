package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/sessionapi"
)

// A worker that opens badly leaves nothing behind.
func TestBadOpenings(t *testing.T) {
	var answer atomic.Pointer[http.HandlerFunc]
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) })
	r := start(t, settings("roundrobin", w.URL), 1)
	f := func(what string, serve http.HandlerFunc) {
		t.Helper()
		answer.Store(&serve)
		s := r.do("POST", invoke, openBody)
		if s.status < 400 || s.header.Get(errorField) == "" || s.header.Get(newID) != "" {
			t.Errorf("%s: %d %v %s", what, s.status, s.header, s.body)
		}
		if n := r.live(); n != 0 {
			t.Fatalf("%s: %d bindings left", what, n)
		}
	}
	f("an error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) })
	f("a refusal", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "extra_forbidden", 400) })
	f("an id that is none", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(newID, "a b") })
	f("an end in the past", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(newID, "abc; Expires=2020-01-01T00:00:00Z")
	})
	f("it breaks off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	answer.Store(&fine)
	if id, _ := r.opens(invoke, openBody); !session.Minted(id) {
		t.Errorf("a worker that names no session: %s", id)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	k, url := newKeeper(t, "w1")
	k.life = 2 * time.Second
	dying, dyingURL := newKeeper(t, "w2")
	r := start(t, settings("roundrobin", url, dyingURL), 2)
	var expiring, dead string
	for expiring == "" || dead == "" {
		id, at := r.opens(invoke, openBody)
		if at == k.name {
			expiring = id
		} else {
			dead = id
		}
	}
	eventually(t, "the session has expired", func() bool {
		return r.do("POST", invoke, hello, sessionID, expiring).status == 400
	})
	r.do("POST", invoke, hello, sessionID, expiring).refusal(t, "expired", 400, "ValidationError", "expired")
	p := r.state.Load().pools[0]
	if err := p.change(only(p, k.name)); err != nil { // w2 is gone
		t.Fatal(err)
	}
	r.do("POST", invoke, hello, sessionID, dead).refusal(t, "its worker is gone", 400, "ValidationError", "ended with its worker")
	_ = dying
}

// only is the pool's configuration with one of its workers.
func only(p *pool, id string) conf.Pool {
	c := p.set.Load().conf
	for _, w := range c.Workers {
		if w.ID == id {
			c.Workers = []conf.Worker{w}
		}
	}
	return c
}

func TestCallersAreStrangers(t *testing.T) {
	dir := t.TempDir()
	keys := ""
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name), "the-key-of-"+name)
		keys += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n", name, filepath.Join(dir, name))
	}
	_, url := newKeeper(t, "w1")
	r := start(t, keys+settings("roundrobin", url), 1)
	r.do("POST", invoke, openBody, "Authorization", sigV4).refusal(t, "no key", 403, "AccessDeniedException", "X-Api-Key")
	id, _ := r.opens(invoke, openBody, "X-Api-Key", "the-key-of-a")
	if s := r.do("POST", invoke, hello, "X-Api-Key", "the-key-of-a", sessionID, id); s.status != 200 {
		t.Errorf("its own: %d %s", s.status, s.body)
	}
	for _, body := range []string{hello, closeBody} {
		r.do("POST", invoke, body, "X-Api-Key", "the-key-of-b", sessionID, id).refusal(t, "foreign", 400, "ValidationError", "no such session")
	}
}

func TestThePlainTwin(t *testing.T) {
	t.Parallel()
	r := start(t, settings("roundrobin", echoes(t, 3)...), 3)
	s := r.do("POST", "/sessions", `{"model":"sim"}`)
	var made sessionapi.Session
	if err := json.Unmarshal([]byte(s.body), &made); err != nil || s.status != 201 || s.header.Get("Location") != "/sessions/"+made.ID || time.Until(made.Expires) < 19*time.Minute {
		t.Fatalf("%d %v %s", s.status, s.header, s.body)
	}
	home := r.at("X-Session-Id", made.ID)
	for range 4 {
		if at := r.at("X-Session-Id", made.ID); at != home {
			t.Errorf("at %s; was at %s", at, home)
		}
	}
	if s := r.do("GET", "/sessions/"+made.ID, ""); s.status != 200 || !strings.Contains(s.body, made.ID) || strings.Contains(s.body, home+`"`) {
		t.Errorf("GET: %d %s", s.status, s.body)
	}
	page := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/sessions?worker="+home, "")
	if !strings.Contains(page.body, `"opened":1`) || !strings.Contains(page.body, `"fingerprint"`) || strings.Contains(page.body, made.ID) {
		t.Errorf("the operator's page: %s", page.body)
	}
	if s := r.do("DELETE", "/sessions/"+made.ID, ""); s.status != 204 {
		t.Errorf("DELETE: %d %s", s.status, s.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		for _, id := range []string{made.ID, session.MintID(), "a%20b"} {
			if s := r.do(method, "/sessions/"+id, ""); s.status != 404 {
				t.Errorf("%s of %s: %d %s", method, id, s.status, s.body)
			}
		}
	}
	if s := r.do("POST", "/v1/completions", hello, "X-Session-Id", made.ID); s.status != 400 || !strings.Contains(s.body, "session_closed") {
		t.Errorf("use after DELETE: %d %s", s.status, s.body)
	}
	for _, bad := range []string{"{", `{"model":"nobody's"}`} {
		if s := r.do("POST", "/sessions", bad); s.status < 400 {
			t.Errorf("POST %s: %d", bad, s.status)
		}
	}
}
