package sagemaker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestErrorsAsTheServiceModelHasThem(t *testing.T) {
	f := func(e *Error, status int, kind, body string) {
		t.Helper()
		if e.Status != status || e.Type != kind || string(e.Body()) != body {
			t.Errorf("%d %s %s; want %d %s %s", e.Status, e.Type, e.Body(), status, kind, body)
		}
		want := [][2]string{{"Content-Type", "application/json"}, {"x-amzn-ErrorType", kind}, {"x-amzn-RequestId", "r-1"}}
		for i, h := range e.Headers("r-1") {
			if h != want[i] {
				t.Errorf("%s: header %v; want %v", kind, h, want[i])
			}
		}
	}
	f(ValidationError(`say "please"`), 400, "ValidationError", `{"Message":"say \"please\""}`)
	f(ModelNotReady("m"), 429, "ModelNotReadyException", `{"Message":"m"}`)
	f(InternalFailure("m"), 500, "InternalFailure", `{"Message":"m"}`)
	f(ServiceUnavailable("m"), 503, "ServiceUnavailable", `{"Message":"m"}`)
	f(ModelError(400, "no"), 424, "ModelError",
		`{"Message":"Received client error (400) from model with message \"no\".","OriginalStatusCode":400,"OriginalMessage":"no"}`)
	f(ModelError(0, "gone"), 424, "ModelError",
		`{"Message":"Received server error (0) from model with message \"gone\".","OriginalStatusCode":0,"OriginalMessage":"gone"}`)
}

func TestRefusals(t *testing.T) {
	f := func(from, status int, kind string) {
		t.Helper()
		if e := Refusal(from, "m"); e.Status != status || e.Type != kind || !strings.Contains(e.Message, "m") {
			t.Errorf("%d: %+v; want %d %s", from, e, status, kind)
		}
	}
	f(400, 400, "ValidationError")
	f(401, 403, "AccessDeniedException")
	f(403, 403, "AccessDeniedException")
	f(404, 400, "ValidationError")
	f(408, 408, "RequestTimeoutException")
	f(413, 413, "ValidationError")
	f(429, 429, "ModelNotReadyException")
	f(431, 431, "ValidationError")
	f(499, 400, "ValidationError")
	f(500, 500, "InternalFailure")
	f(502, 424, "ModelError")
	f(503, 503, "ServiceUnavailable")
	f(504, 424, "ModelError")
	f(501, 500, "InternalFailure")
}

func TestWhatTheModelSaid(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		e := Translate(503, []byte(body))
		if e.Type != "ModelError" || e.OriginalStatusCode != 503 || e.OriginalMessage != want {
			t.Errorf("%.60q: %q; want %q", body, e.OriginalMessage, want)
		}
		for _, s := range []string{e.Message, e.OriginalMessage} {
			if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxMessage {
				t.Errorf("%.60q: a message of %d characters, valid %v", body, utf8.RuneCountInString(s), utf8.ValidString(s))
			}
		}
		if !json.Valid(e.Body()) {
			t.Errorf("%.60q: %s", body, e.Body())
		}
	}
	f(`{"error":{"message":"no such model","type":"NotFoundError","param":null,"code":404}}`, "no such model")
	f(`{"type":"error","error":{"type":"x","message":"too long"}}`, "too long")
	f(`{"error":"flat"}`, "flat")
	f(`{"message":"old vLLM","object":"error"}`, "old vLLM")
	f(`{"detail":"Not Found"}`, "Not Found")
	f(`{"detail":[{"msg":"x"}]}`, `{"detail":[{"msg":"x"}]}`)
	f("Internal Server Error", "Internal Server Error")
	f("", "")
	f(`{"error":{"mess`, `{"error":{"mess`)
	f("\xff\xfe", "\uFFFD")
	f(strings.Repeat("ü", 5000), strings.Repeat("ü", maxMessage-1)+"…")
	f(`{"error":{"message":"`+strings.Repeat("x", 9000)+`"}}`, strings.Repeat("x", maxMessage-1)+"…")
}

// recording is one request to a real worker and its answer.
type recording struct {
	Name    string
	Request struct {
		Path    string
		Headers head
		Body    json.RawMessage
	}
	Status  string
	Headers head
	Body    string
}

func recordings(t *testing.T, visit func(r recording, c Call, refused *Error)) {
	files, _ := filepath.Glob("testdata/vllm-*.json")
	if len(files) != 3 {
		t.Fatalf("%d files; want three versions", len(files))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		var all []recording
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err != nil || len(all) < 13 {
			t.Fatalf("%s: %d recordings, %v", file, len(all), err)
		}
		for _, r := range all {
			r.Name = file + " " + r.Name
			c, refused := Read(r.Request.Path, r.Request.Headers.lookup, RequestType(r.Request.Body))
			visit(r, c, refused)
		}
	}
}

func TestRealWorkers(t *testing.T) {
	ops := map[Op]int{}
	recordings(t, func(r recording, c Call, refused *Error) {
		ops[c.Op]++
		status, _ := strconv.Atoi(strings.Fields(r.Status)[1])
		if refused != nil {
			if status < 400 {
				t.Errorf("%s: refused here (%v), and answered with %d there", r.Name, refused, status)
			}
			return
		}
		if status >= 300 {
			var real struct{ Error struct{ Message string } }
			_ = json.Unmarshal([]byte(r.Body), &real)
			if e := Translate(status, []byte(r.Body)); real.Error.Message == "" || e.OriginalMessage != real.Error.Message || e.OriginalStatusCode != status {
				t.Errorf("%s: %+v; the worker said %s", r.Name, e, r.Body)
			}
			return
		}
		id, expires, ok, err := Opened(r.Headers.get)
		switch {
		case err != nil, ok != (c.Op == Open):
			t.Errorf("%s: opened %v, %v; the call is %v", r.Name, ok, err, c.Op)
		case ok && (!strings.Contains(r.Body, id) || expires.Sub(end).Abs() > 24*time.Hour || FormatNew(id, expires) != r.Headers.get(HeaderNewSession)):
			t.Errorf("%s: %s until %v; the worker said %s", r.Name, id, expires, r.Headers.get(HeaderNewSession))
		case c.Op == Close && r.Headers.get(HeaderClosedSession) != c.Session:
			t.Errorf("%s: closed %q; want %q", r.Name, r.Headers.get(HeaderClosedSession), c.Session)
		}
	})
	if ops[Open] != 6 || ops[Close] != 3 || ops[Use] != 12 { // of three: an opening that the worker refuses, a close without an id
		t.Fatalf("the recordings have %v", ops)
	}
}
