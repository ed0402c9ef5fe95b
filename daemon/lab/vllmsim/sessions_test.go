package vllmsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// TestSessionsMatchRecording replays a recording in its order, with the worker's own ids in place of vLLM's.
func TestSessionsMatchRecording(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, Sessions: true})
	var list []exchange
	if err := json.Unmarshal(recorded(t, "sagemaker.json"), &list); err != nil {
		t.Fatal(err)
	}
	recordedID, id := "", ""
	for _, x := range list {
		if x.Name == "session open" {
			recordedID = uuid.FindString(x.Body)
		}
		if named := x.Request.Headers[sessionHeader]; named != nil && *named == recordedID {
			*named = id
		}
		w := send(t, s, x)
		if x.Name == "session open" {
			if id = uuid.FindString(w.Body.String()); id == "" {
				t.Fatalf("no id: %s", w.Body)
			}
			end, err := time.Parse("2006-01-02T15:04:05Z", strings.TrimPrefix(w.Header().Get(newSessionHeader), id+"; Expires="))
			if left := time.Until(end); err != nil || left < 19*time.Minute || left > 20*time.Minute {
				t.Errorf("it ends in %v (%v): %v", left, err, w.Header())
			}
		}
		sameSessionAnswer(t, x, w.Code, w.Header(), w.Body.String(), recordedID, id)
	}
	if st := s.Stats(); st.Sessions != 0 || st.SessionUses != 1 {
		t.Errorf("%d sessions left, %d uses; want 0 and 1", st.Sessions, st.SessionUses)
	}
}

func sameSessionAnswer(t *testing.T, x exchange, code int, h http.Header, body, recordedID, id string) {
	t.Helper()
	if !strings.HasPrefix(x.Status, "HTTP/1.1 "+strconv.Itoa(code)+" ") {
		t.Errorf("%s: status %d, recorded %s: %s", x.Name, code, x.Status, body)
	}
	var got []string
	for name := range h {
		if h[name] != nil {
			got = append(got, strings.ToLower(name))
		}
	}
	want := slices.Collect(maps.Keys(x.Headers))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: fields %v, recorded %v", x.Name, got, want)
	}
	if code != 200 || !strings.HasPrefix(x.Body, "{") {
		if recordedID != "" {
			x.Body = strings.ReplaceAll(x.Body, recordedID, id)
		}
		if body != x.Body {
			t.Errorf("%s:\n got %s\nwant %s", x.Name, body, x.Body)
		}
		return
	}
	sameShape(t, x.Name, []byte(body), []byte(x.Body))
}

// TestSessionsSwitchedOff holds the default to what vLLM's session code answers (0.32.0).
func TestSessionsSwitchedOff(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	f := func(body, id, want string) {
		t.Helper()
		w := do(s, "POST", "/invocations", body, sessionHeader, id)
		if got := errorOf(t, w.Body.String()); w.Code != 400 || got.Message != want || got.Type != "Bad Request" {
			t.Errorf("%s with %q: %d %s", body, id, w.Code, w.Body)
		}
	}
	const off = "Invalid payload. stateful sessions not enabled"
	f(`{"requestType":"NEW_SESSION"}`, "", off)
	f(`{"requestType":"CLOSE"}`, "x", off)
	f(`{"prompt":"x"}`, "x", off+", X-Amzn-SageMaker-Session-Id header not supported")
	f(`{"prompt":"x"}`, "NEW_SESSION", off+", X-Amzn-SageMaker-Session-Id header not supported")
	if w := do(s, "POST", "/v1/completions", `{"prompt":"x"}`, sessionHeader, "x"); w.Code != 200 {
		t.Errorf("/v1 looks at the field: %d %s", w.Code, w.Body)
	}
	if w := do(s, "POST", "/invocations", `{"requestType":"open_session","prompt":"x"}`); w.Code != 400 {
		t.Errorf("open_session: %d %s", w.Code, w.Body)
	}
}

func openOne(t *testing.T, s *Server, body string) string {
	t.Helper()
	w := do(s, "POST", "/invocations", body)
	id := uuid.FindString(w.Header().Get(newSessionHeader) + w.Header().Get(sessionHeader))
	if w.Code != 200 || id == "" {
		t.Fatalf("open: %d %v %s", w.Code, w.Header(), w.Body)
	}
	return id
}

// TestSessionExpires: an expired session is let in once and then gone, as in vLLM; one with a payload is gone at once.
func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Speed: 1000, Sessions: true, SessionLife: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		plain, closed := openOne(t, s, `{"requestType":"NEW_SESSION"}`), openOne(t, s, `{"requestType":"NEW_SESSION"}`)
		seen := openOne(t, s, `{"requestType":"open_session"}`)
		use := func(id string, want int) {
			t.Helper()
			if w := do(s, "POST", "/invocations", `{"prompt":"x","max_tokens":1}`, sessionHeader, id); w.Code != want {
				t.Errorf("%v: %d %s; want %d", time.Now(), w.Code, w.Body, want)
			}
		}
		time.Sleep(59 * time.Second)
		use(plain, 200)
		use(seen, 200)
		time.Sleep(2 * time.Second)
		use(plain, 200)
		use(plain, 400)
		use(seen, 400)
		if w := do(s, "POST", "/invocations", `{"requestType":"CLOSE"}`, sessionHeader, closed); w.Code != 424 {
			t.Errorf("close of an expired one: %d %s", w.Code, w.Body)
		}
		openOne(t, s, `{"requestType":"NEW_SESSION"}`)
		time.Sleep(2 * time.Minute)
		if st := s.Stats(); st.Sessions != 0 {
			t.Errorf("%d sessions after their end", st.Sessions)
		}
	})
}

// zeros is an endless payload.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestPayloadIsStoredOnce sends 100 MB to open a session; prompts then see it, until it is closed.
func TestPayloadIsStoredOnce(t *testing.T) {
	s := start(t, Config{Speed: 1000, Sessions: true})
	const size = 100 << 20
	sum := sha256.New()
	body := func() io.Reader {
		return io.MultiReader(strings.NewReader(`{"requestType":"open_session","image":"`), io.LimitReader(zeros{}, size),
			strings.NewReader(`"}`))
	}
	n, _ := io.Copy(sum, body())
	r, err := client.Post(s.URL()+"/invocations", "application/json", body())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var told struct {
		Session, SHA256 string
		Bytes           int64
	}
	if err := json.NewDecoder(r.Body).Decode(&told); err != nil || told.Bytes != n ||
		told.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		t.Fatalf("it is told as %+v (%v); sent were %d bytes", told, err, n)
	}
	id, _, _ := strings.Cut(r.Header.Get(sessionHeader), "; Expires=")
	if id != told.Session || s.Stats().SessionBytes != n || s.Stats().Sessions != 1 {
		t.Fatalf("session %q of %+v, %+v", id, told, s.Stats())
	}
	prompt := func(id string) (a answer) {
		w := do(s, "POST", "/invocations", `{"messages":[{"role":"user","content":"what is it?"}],"max_tokens":4}`,
			sessionHeader, id)
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return a
	}
	without, first, second := prompt(""), prompt(id), prompt(id)
	if first.Usage.Prompt-without.Usage.Prompt != maxPayloadTokens || first.Usage.Details.Cached != 0 ||
		second.Usage.Details.Cached < maxPayloadTokens {
		t.Errorf("usage %+v without, then %+v and %+v", without.Usage, first.Usage, second.Usage)
	}
	if first.Choices[0].Message.Content == without.Choices[0].Message.Content {
		t.Error("the answer does not depend on the payload")
	}
	w := do(s, "POST", "/invocations", `{"requestType":"close_session"}`, sessionHeader, id)
	if w.Code != 200 || w.Header().Get(closedSessionHeader) != id || s.Stats().SessionBytes != 0 {
		t.Errorf("close: %d %v, %+v", w.Code, w.Header(), s.Stats())
	}
}

// TestPayloadThatBreaksOff leaves nothing behind.
func TestPayloadThatBreaksOff(t *testing.T) {
	s := start(t, Config{Speed: 1000, Sessions: true})
	in, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := client.Post(s.URL()+"/invocations", "application/json", in); err == nil {
			r.Body.Close()
			t.Errorf("half a payload got %s", r.Status)
		}
	}()
	io.WriteString(out, `{"requestType":"open_session","image":"`+strings.Repeat("0", 1<<20))
	out.CloseWithError(io.ErrUnexpectedEOF)
	<-done
	if st := s.Stats(); st.Sessions != 0 {
		t.Errorf("%d sessions", st.Sessions)
	}
}

func TestSessionFaults(t *testing.T) {
	s := start(t, Config{Speed: 1000, Sessions: true})
	const open = `{"requestType":"NEW_SESSION"}`
	setFault(t, s, `{"mode":"open-error"}`)
	if w := do(s, "POST", "/invocations", open); w.Code != 424 || s.Stats().Sessions != 0 {
		t.Errorf("open-error: %d %s", w.Code, w.Body)
	}
	if w := do(s, "POST", "/invocations", `{"prompt":"x"}`); w.Code != 200 {
		t.Errorf("open-error strikes prompts: %d %s", w.Code, w.Body)
	}
	setFault(t, s, `{"mode":"open-bare"}`)
	if w := do(s, "POST", "/invocations", open); w.Code != 200 || w.Header().Get(newSessionHeader) != "" ||
		s.Stats().Sessions != 1 {
		t.Errorf("open-bare: %d %v %s", w.Code, w.Header(), w.Body)
	}
	setFault(t, s, `{"mode":"none"}`)
	id := openOne(t, s, open)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if w := do(s, "POST", "/invocations", `{"prompt":"x"}`, sessionHeader, id); w.Code != 400 || s.Stats().Sessions != 0 {
		t.Errorf("a session outlived its worker: %d %s", w.Code, w.Body)
	}
}

// FuzzRequestType: what is found is what encoding/json finds, if the whole body was seen and the field stands there
// once.
func FuzzRequestType(f *testing.F) {
	for _, s := range []string{`{"requestType":"CLOSE"}`,
		`{"a":[1,{"requestType":"x"}],"requestType":"open_session","b":"`, `{"requestType":7}`, `["requestType"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		kind, ok := requestType(head)
		_ = invalidRequest(head, kind)
		var all map[string]json.RawMessage // a struct would take names in any case
		if json.Unmarshal(head, &all) != nil || strings.Count(string(head), "requestType") != 1 ||
			strings.Contains(string(head), `\`) {
			return
		}
		var want string
		if json.Unmarshal(all["requestType"], &want) == nil && want != "" && (!ok || kind != want) {
			t.Errorf("%s: %q %v; want %q", head, kind, ok, want)
		}
	})
}
