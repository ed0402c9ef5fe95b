package exchange

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// jobScene has workers that each make jobs, and answer with their own name to everything below.
func jobScene(t *testing.T, workers int, made string) *scene {
	t.Helper()
	var scripts [][]string
	for i := range workers {
		scripts = append(scripts, []string{strings.ReplaceAll(made, "NAME", fmt.Sprint("w", i))})
	}
	return newScene(t, scripts...)
}

func (s *scene) as(caller *gate.Caller, method, path, body string) answer {
	s.t.Helper()
	in := inbound(method, path, body, "Content-Type", "application/json")
	in.Caller = caller
	return s.ask(in)
}

// TestJobsStay: what a POST made is asked for at the worker that made it, however its answer comes.
func TestJobsStay(t *testing.T) {
	const body = `{"object":"x","id":"job-NAME","status":"queued"}`
	chunks := func(parts ...string) string {
		text := "HTTP/1.1 200 x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		for _, p := range parts {
			text += fmt.Sprintf("%x\r\n%s\r\n", len(strings.ReplaceAll(p, "NAME", "w0")), p) + pause
		}
		return text + "0\r\n\r\n"
	}
	for name, made := range map[string]string{"whole": whole(200, strings.ReplaceAll(body, "NAME", "w0")),
		"created": whole(201, strings.ReplaceAll(body, "NAME", "w0")), "in pieces": chunks(body[:20], body[20:]),
		"one chunk": chunks(body)} {
		s := jobScene(t, 3, strings.Replace(made, "job-w0", "job-NAME", 1))
		for range 6 {
			by := s.as(anybody(), "POST", "/v1/videos", `{"model":"m","prompt":"a cat"}`).by
			for _, ask := range [][2]string{{"GET", ""}, {"GET", "/content"}, {"POST", "/cancel"}, {"POST", "/remix"}} {
				if got := s.as(anybody(), ask[0], "/v1/videos/job-"+by+ask[1], "").by; got != by {
					t.Errorf("%s: %s of a job of %s goes to %s", name, ask, by, got)
				}
			}
		}
	}
}

// TestJobsBound: which answers bind a job.
func TestJobsBound(t *testing.T) {
	f := func(method, path, answer, id string, want bool) {
		t.Helper()
		s := newScene(t, []string{answer})
		s.as(anybody(), method, path, `{"model":"m"}`)
		_, status := s.pool.Sessions.Peek(inbound("GET", "/", "").Stored(id), time.Now())
		if got := status == session.Found; got != want {
			t.Errorf("%s %s, %.80q: %s is bound: %v", method, path, answer, id, got)
		}
	}
	const job = `{"id":"job_1"}`
	f("POST", "/v1/files", whole(200, job), "job_1", true)
	f("POST", "/v1/videos/job_0/remix", whole(200, job), "job_1", true)
	f("POST", "/v1/of/tomorrow", whole(202, `{"id":17}`), "17", true)
	f("GET", "/v1/videos/job_1", whole(200, job), "job_1", false) // another key's, perhaps
	f("POST", "/v1/videos/job_1/cancel", whole(200, job), "job_1", false)
	f("POST", "/v1/files", whole(400, job), "job_1", false)
	f("GET", "/v1/files", whole(200, job), "job_1", false)
	f("POST", "/v1/files", strings.Replace(whole(200, job), "json", "text", 1), "job_1", false)
	f("POST", "/v1/chat/completions", whole(200, `{"id":"job_1","choices":[]}`), "job_1", false)
	f("POST", "/v1/audio/transcriptions", whole(200, job), "job_1", false)
	f("GET", "/v1/batches/b_1", whole(200, `{"id":"b_1","output_file_id":"file_1","error_file_id":null}`), "file_1", true)
	f("GET", "/v1/batches/b_1", whole(200, `{"id":"b_1","error_file_id":"file_2"}`), "file_2", true)
	f("POST", "/v1/files", whole(200, `{"pad":"`+strings.Repeat("x", 64<<10)+`","id":"job_1"}`), "job_1", false)
}

// TestJobsEnd: a deletion that the worker confirms ends the binding, and no other does.
func TestJobsEnd(t *testing.T) {
	f := func(method, path string, status int, lives bool) {
		t.Helper()
		s := newScene(t, []string{whole(200, `{"id":"job_1"}`), whole(status, `{}`)})
		s.as(anybody(), "POST", "/v1/files", `{}`)
		s.as(anybody(), method, path, "")
		_, got := s.pool.Sessions.Peek(inbound("GET", "/", "").Stored("job_1"), time.Now())
		if (got == session.Found) != lives {
			t.Errorf("%s %s, %d: %v", method, path, status, got)
		}
	}
	f("DELETE", "/v1/files/job_1", 200, false)
	f("DELETE", "/v1/files/job_1/", 204, false)
	f("DELETE", "/v1/files/job_1", 404, true)
	f("DELETE", "/v1/files/job_1/parts", 200, true)
	f("GET", "/v1/files/job_1", 200, true)
}

// TestJobsReference: a new job goes to the worker of the file that its body names.
func TestJobsReference(t *testing.T) {
	s := jobScene(t, 3, strings.Replace(whole(200, `{"id":"job-w0"}`), "w0", "NAME", 1))
	for range 6 {
		by := s.as(anybody(), "POST", "/v1/files", `{}`).by
		if by == "" {
			t.Fatal("no worker took the file")
		}
		for path, body := range map[string]string{"/v1/batches": `{"input_file_id":"job-` + by + `","endpoint":"/v1/chat/completions"}`,
			"/v1/videos": `{"model":"m","input_reference":{"file_id":"job-` + by + `"}}`} {
			if got := s.as(anybody(), "POST", path, body).by; got != by {
				t.Errorf("%s of a file of %s goes to %s", path, by, got)
			}
		}
		form := "--B\r\nContent-Disposition: form-data; name=\"input_reference[file_id]\"\r\n\r\njob-" + by + "\r\n--B--\r\n"
		in := inbound("POST", "/v1/videos", form, "Content-Type", "multipart/form-data; boundary=B")
		if got := s.ask(in).by; got != by {
			t.Errorf("a form with a file of %s goes to %s", by, got)
		}
	}
}

// TestJobsOfKeys: a job belongs to the key that made it. To another key it is unknown; one that nobody has bound goes
// to a worker.
func TestJobsOfKeys(t *testing.T) {
	keys := gate.NewKeys([]gate.Key{{Name: "alice", Secret: "a", Models: []string{"*"}}, {Name: "bob", Secret: "b", Models: []string{"*"}},
		{Name: "carl", Secret: "c", Models: []string{"m"}}})
	caller := func(secret string) *gate.Caller {
		c, ok := keys.Check("", secret)
		if !ok {
			t.Fatal(secret)
		}
		return c
	}
	s := newScene(t, []string{whole(200, `{"id":"job_1"}`), whole(200, `{"id":"job_2"}`), whole(200, `{}`)})
	s.as(caller("a"), "POST", "/v1/videos", `{"model":"m"}`)
	s.as(caller("c"), "POST", "/v1/videos", `{"model":"m"}`)
	f := func(secret, method, path, body string, status int, code string) {
		t.Helper()
		a := s.as(caller(secret), method, path, body)
		if a.status != status || a.in.Seen.End != code {
			t.Errorf("%s: %s %s: %d %q; want %d %q", secret, method, path, a.status, a.in.Seen.End, status, code)
		}
	}
	f("a", "GET", "/v1/videos/job_1", "", 200, "")
	f("b", "GET", "/v1/videos/job_1", "", 404, "job_not_found")
	f("b", "DELETE", "/v1/videos/job_1", "", 404, "job_not_found")
	f("b", "POST", "/v1/batches", `{"input_file_id":"job_1"}`, 404, "job_not_found")
	f("b", "POST", "/v1/batches", `{"input_file_id":"job_1`, 400, "invalid_json")
	f("b", "GET", "/v1/videos/job_9", "", 200, "") // nobody has bound it
	f("b", "POST", "/v1/files", `--x`, 200, "")
	f("c", "GET", "/v1/videos/job_2/content", "", 200, "")
	f("c", "POST", "/v1/videos/job_2/remix", `{"model":"secret"}`, 403, "model_not_found")
	f("c", "POST", "/v1/videos/job_2/remix", `{"prompt":"x"}`, 400, "missing_model")
	f("c", "POST", "/v1/videos/job_2/cancel", `{}`, 200, "")
	f("c", "GET", "/v1/videos/job_9", "", 404, "job_not_found")
	f("c", "GET", "/v1/videos/job_1", "", 404, "job_not_found")
	f("a", http.MethodDelete, "/v1/videos/job_1", "", 200, "")
	f("b", "GET", "/v1/videos/job_1", "", 200, "") // it has ended, and a worker says so
}
