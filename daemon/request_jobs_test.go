package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// maker is a worker that makes responses in the background, batches and videos. The last one has the status.
type maker struct {
	mu     sync.Mutex // guards all below
	status string     // "" = it knows of none
	made   int
	asked  int
}

func (m *maker) set(status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

func (m *maker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/cancel"):
		m.status = "cancelled"
	case r.Method == "DELETE":
		m.status = ""
		io.WriteString(w, `{"deleted":true}`)
		m.mu.Unlock()
		return
	case r.Method == "POST":
		m.made++
		m.status = "in_progress"
	}
	if r.Method == "GET" {
		m.asked++
	}
	id, status := fmt.Sprintf("job_%d", m.made), m.status
	m.mu.Unlock()
	usage := "null"
	switch status {
	case "":
		http.Error(w, `{"error":{"message":"no such job"}}`, 404)
		return
	case "completed":
		usage = `{"input_tokens":20,"output_tokens":2000,"total_tokens":2020}`
	}
	if strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"type":"response.created","response":{"id":%q,"status":"in_progress","background":true},"sequence_number":0}`+"\n\n"+
			`data: {"type":"response.output_text.delta","delta":"word","sequence_number":1}`+"\n\n", id)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client leaves, and the work goes on
		return
	}
	fmt.Fprintf(w, `{"id":%q,"object":"x","status":%q,"output":[{"status":"completed","usage":{"output_tokens":1}}],"usage":%s}`, id, status, usage)
}

// TestJobsBelongToTheirKey: a response in the background, a batch and a video hold the place and the tokens of their key until
// they have ended, however the router learns of that. Meanwhile their client may ask for them.
func TestJobsBelongToTheirKey(t *testing.T) {
	t.Parallel()
	const responses, batches, videos = "/v1/responses", "/v1/batches", "/v1/videos"
	const background = `{"model":"sim","input":"a book","background":true,"max_output_tokens":3000}`
	asks := func(*running, string) {}
	for _, c := range []struct {
		about, path, body string
		end               func(r *running, job string, m *maker)
		by                func(r *running, job string) // makes the router learn of it at once
		tokens            float64
	}{
		{"a response that the client reads", responses, background, func(_ *running, _ string, m *maker) { m.set("completed") },
			func(r *running, job string) { r.as("team", "GET", job, "") }, 2020},
		{"a response that nobody reads", responses, background, func(_ *running, _ string, m *maker) { m.set("completed") }, nil, 2020},
		{"a batch that the client reads", batches, `{"input_file_id":"file_1","endpoint":"/v1/chat/completions"}`, func(_ *running, _ string, m *maker) { m.set("completed") },
			func(r *running, job string) { r.as("team", "GET", job, "") }, 2020},
		{"a video that nobody reads", videos, `{"model":"sim","prompt":"the sea"}`, func(_ *running, _ string, m *maker) { m.set("completed") }, nil, 2020},
		{"a response that is cancelled", responses, background, asking("POST", "/cancel"), asks, -1},
		{"a batch that is cancelled", batches, `{"input_file_id":"file_1"}`, asking("POST", "/cancel"), asks, -1},
		{"a video that is deleted", videos, `{"model":"sim","prompt":"the sea"}`, asking("DELETE", ""), asks, -1},
		{"a response of which the worker does not know any more", responses, background, func(_ *running, _ string, m *maker) { m.set("") }, nil, -1},
		{"one that failed", responses, background, func(_ *running, _ string, m *maker) { m.set("failed") }, nil, -1},
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Parallel()
			m := new(maker)
			r := start(t, limited(t, "team", "max_in_flight = 1\ntokens_per_minute = 100000000", "other", "")+settings("roundrobin", fakeWorker(t, m.ServeHTTP).URL), 1)
			for turn := range 2 { // the place comes back, and once
				_, before, _ := r.taken("team")
				made := r.as("team", "POST", c.path, c.body)
				if made.status != 200 {
					t.Fatalf("%d %s", made.status, made.body)
				}
				job := fmt.Sprintf("%s/job_%d", c.path, turn+1)
				if _, _, n := r.taken("team"); n != 1 || r.metric("warmpath_held", `what="jobs"`) != 1 {
					t.Fatalf("%d are in flight, %v jobs are held", n, r.metric("warmpath_held", `what="jobs"`))
				}
				if got := r.as("team", "POST", "/v1/completions", `{"model":"sim","prompt":"a"}`); got.status != 429 {
					t.Errorf("beside the job: %d %s", got.status, got.body)
				}
				if got := r.as("team", "GET", job, ""); got.status != 200 || !strings.Contains(got.body, "in_progress") {
					t.Errorf("the client asks for it: %d %s", got.status, got.body)
				}
				c.end(r, job, m)
				if c.by != nil {
					c.by(r, job)
					if _, _, n := r.taken("team"); n != 0 && c.tokens > 0 {
						t.Error("the client knows that it has ended, and the place is still held")
					}
				}
				eventually(t, "the place is back", func() bool { _, _, n := r.taken("team"); return n == 0 })
				eventually(t, "nothing is held", func() bool { return r.metric("warmpath_held") == 0 && r.metric("warmpath_accounts_open") == 0 })
				if _, used, _ := r.taken("team"); c.tokens >= 0 && used-before != c.tokens {
					t.Errorf("%.0f tokens; want %.0f", used-before, c.tokens)
				}
				if r.metric("warmpath_account_leaks_total") != 0 {
					t.Error("an account leaks")
				}
			}
		})
	}
}

// asking ends a job by a call of its client.
func asking(method, behind string) func(r *running, job string, m *maker) {
	return func(r *running, job string, _ *maker) {
		if got := r.as("team", method, job+behind, ""); got.status != 200 {
			r.t.Errorf("%s %s: %d %s", method, job, got.status, got.body)
		}
	}
}

// TestJobWhoseClientLeaves: a stream that is made in the background goes on without its client, and so does what it holds. Without
// limits of its key nothing is followed, nor a stream that ends with its client.
func TestJobWhoseClientLeaves(t *testing.T) {
	t.Parallel()
	m := new(maker)
	r := start(t, limited(t, "team", "max_in_flight = 1\ntokens_per_minute = 100000000", "free", "")+settings("roundrobin", fakeWorker(t, m.ServeHTTP).URL), 1)
	for i, who := range []string{"team", "free", "team"} {
		background := i < 2
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+r.Addr()+"/v1/responses", strings.NewReader(fmt.Sprintf(`{"model":"sim","input":"x","background":%v,"stream":true}`, background)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", who+"-secret")
		resp, err := testClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = bufio.NewReader(resp.Body).ReadString('\n')
		resp.Body.Close()
		if who == "free" || !background {
			eventually(t, "its account has ended", func() bool { return r.metric("warmpath_accounts_open") == 0 })
			m.mu.Lock()
			if m.asked > 0 {
				t.Errorf("%s: the router asked for it", who)
			}
			m.mu.Unlock()
			continue
		}
		eventually(t, "the job is held", func() bool { return r.metric("warmpath_held", `what="jobs"`) == 1 })
		m.set("completed")
		eventually(t, "the router has asked", func() bool { _, used, n := r.taken("team"); return n == 0 && used == 2020 })
		m.mu.Lock()
		m.asked = 0
		m.mu.Unlock()
	}
}

// TestJobAcrossReloads: a reload leaves a job its place, also if the limit is another one then. A job whose worker a reload
// has removed gives it back.
func TestJobAcrossReloads(t *testing.T) {
	t.Parallel()
	m := new(maker)
	w, other := fakeWorker(t, m.ServeHTTP), fakeWorker(t, new(maker).ServeHTTP)
	text := func(places int, url string) string {
		return limited(t, "team", fmt.Sprintf("max_in_flight = %d\ntokens_per_minute = 100000000", places)) + settings("roundrobin", url)
	}
	r := start(t, text(1, w.URL), 1)
	reload := func(places int, url string) {
		t.Helper()
		write(t, r.file, text(places, url))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(what string, status int) {
		t.Helper()
		if _, _, n := r.taken("team"); n != 1 || r.metric("warmpath_held", `what="jobs"`) != 1 {
			t.Errorf("%s: %d are in flight", what, n)
		}
		if got := r.as("team", "POST", "/v1/completions", `{"model":"sim","prompt":"a","max_tokens":8}`); got.status != status {
			t.Errorf("%s: beside the job %d %s; want %d", what, got.status, got.body, status)
		}
	}
	if got := r.as("team", "POST", "/v1/responses", `{"model":"sim","input":"a book","background":true,"max_output_tokens":3000}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	reload(1, w.URL)
	wants("one place", 429)
	reload(2, w.URL)
	wants("two places", 200)
	reload(1, w.URL)
	wants("one place again", 429)
	reload(1, other.URL)
	eventually(t, "the place is back", func() bool { _, _, n := r.taken("team"); return n == 0 })
	if r.metric("warmpath_held") != 0 || r.metric("warmpath_accounts_open") != 0 || r.metric("warmpath_account_leaks_total") != 0 {
		t.Error("something is held")
	}
}
