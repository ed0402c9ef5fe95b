package daemon

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestFailuresHiddenInA200AreRetried: a worker that accepts requests only to give them up costs no request, and is
// taken for draining after the third.
func TestFailuresHiddenInA200AreRetried(t *testing.T) {
	f := func(mode, path, body string) {
		t.Helper()
		f := sims(t, 2, vllmsim.Config{})
		r := start(t, settings("roundrobin", f.URLs()...), 2)
		if err := f[0].SetFault(vllmsim.Fault{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		retries := 0
		for i := range 6 {
			s := r.do("POST", path, body, "X-Warmpath-Explain", "1")
			if s.status != 200 || s.err != nil || strings.Contains(s.body, "abort") || len(s.body) < 100 {
				t.Fatalf("%s %s: request %d: %d %v %s", mode, path, i, s.status, s.err, s.body)
			}
			if s.header.Get("X-Warmpath-Retries") == "1" {
				retries++
			}
		}
		w := r.describe()[0].Workers[0]
		if retries != 3 || w.State != "draining" {
			t.Errorf("%s %s: %d retries, the worker is %s (%s); want 3 and draining", mode, path, retries, w.State, w.Why)
		}
	}
	const completion, chat = `{"model":"sim","prompt":"x","max_tokens":9}`, `{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":9}`
	streamed := func(s string) string { return strings.Replace(s, "{", `{"stream":true,`, 1) }
	f(vllmsim.FaultDrain, "/v1/completions", completion)
	f(vllmsim.FaultDrain, "/v1/completions", streamed(completion))
	f(vllmsim.FaultDrain, "/v1/chat/completions", chat)
	f(vllmsim.FaultDrain, "/v1/chat/completions", streamed(chat))
	f(vllmsim.FaultDrain, "/v1/messages", streamed(chat))
}

func TestAbortInTheMiddleIsToldAndNotAnEnd(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{Speed: 1})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	open := func(path string) *http.Response {
		t.Helper()
		resp, err := testClient.Post("http://"+r.Addr()+path, "application/json",
			strings.NewReader(`{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":2000,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		io.ReadFull(resp.Body, make([]byte, 40))
		return resp
	}
	chat, messages := open("/v1/chat/completions"), open("/v1/messages")
	if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultAbort}); err != nil {
		t.Fatal(err)
	}
	end := func(resp *http.Response, want, never string) {
		t.Helper()
		b, err := io.ReadAll(resp.Body)
		text := string(b)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasSuffix(text, "\n\n") || !strings.Contains(text, want) || strings.Contains(text, never) {
			t.Errorf("the stream ended with %v: ...%s; want %s and io.ErrUnexpectedEOF", err, text[max(0, len(text)-300):], want)
		}
	}
	end(chat, `"code":"worker_broke_off"`, "[DONE]")
	end(messages, "event: error\ndata: {\"type\":\"error\"", "message_stop")
	if s := r.describe()[0].Workers[0]; s.State != "up" || s.InFlight != 0 {
		t.Errorf("the worker is %s with %d in flight; want up, as two requests convict nobody, and 0", s.State, s.InFlight)
	}
}

func TestClientThatLeavesBeforeTheAnswerFreesTheWorker(t *testing.T) {
	gone, arrived := make(chan time.Time, 1), make(chan struct{}, 1)
	w := fakeWorker(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- time.Now()
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	for _, end := range []func(c *net.TCPConn){
		func(c *net.TCPConn) { c.Close() },
		func(c *net.TCPConn) { c.CloseWrite() },
		func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
	} {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		<-arrived
		left := time.Now()
		end(c.(*net.TCPConn))
		select {
		case at := <-gone:
			t.Logf("closed at the worker after %v", at.Sub(left))
		case <-time.After(10 * time.Second):
			t.Fatal("the worker was not told")
		}
		c.Close()
	}
	eventually(t, "no request left", func() bool { return r.front.Stats().InFlight == 0 && r.inFlight() == 0 })
	if s := r.describe()[0].Workers[0]; s.State != "up" || s.LastError != "" {
		t.Errorf("the worker is %s: %s; a client that leaves is not its fault", s.State, s.LastError)
	}
}

func TestStreamsThatOutliveTheDrainAreTold(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{Speed: 1})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), `drain_timeout = "200ms"`), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":20000,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	br.ReadString('\n')
	if err := r.stop(); err == nil || !strings.Contains(err.Error(), "drain_timeout") {
		t.Errorf("the drain ended with %v", err)
	}
	b, err := io.ReadAll(br)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(b), `"code":"router_stopping"`) {
		t.Errorf("the stream ended with %v: %.300s", err, b)
	}
}

func TestRetryBudgetBoundsAStorm(t *testing.T) {
	t.Parallel()
	f := sims(t, 4, vllmsim.Config{})
	r := start(t, withPool(settings("roundrobin", f.URLs()...), "retry_budget = 0.0"), 4)
	for i := range f {
		if err := f[i].SetFault(vllmsim.Fault{Mode: vllmsim.FaultReset}); err != nil {
			t.Fatal(err)
		}
	}
	const n = 150
	bad := 0
	for range n {
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`)
		if s.status == 502 || s.status == 503 {
			bad++
			continue
		}
		t.Logf("%d %v %s", s.status, s.err, s.body)
	}
	sent := uint64(0)
	for _, s := range r.state.Load().pools[0].route.Workers.Stats(time.Now()) {
		sent += s.Sent
	}
	if bad != n || sent > 2*n { // without a budget each would be sent three times
		t.Errorf("%d of %d failed, %d were sent to workers; want all, and at most %d", bad, n, sent, 2*n)
	}
}

func TestDrainingAWorkerByTheAdminAPI(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("roundrobin", f.URLs()...), 2)
	url := "http://" + r.AdminAddr() + "/api/v1/pools/main/workers/w1/drain"
	if s := do(t, "POST", url, "", "Origin", "https://evil.example.com"); s.status != 403 {
		t.Errorf("a strange page may drain: %d", s.status)
	}
	req, _ := http.NewRequest("POST", url, nil)
	req.Host = "evil.example.com" // a name that its owner has pointed here
	req.Header.Set("Origin", "http://evil.example.com")
	if resp, err := testClient.Do(req); err != nil || resp.StatusCode != 403 {
		t.Errorf("a page under a strange name may drain: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if s := do(t, "POST", url, ""); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	for range 6 {
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1"); s.header.Get("X-Warmpath-Worker") != "w2" {
			t.Fatalf("%d, by %q", s.status, s.header.Get("X-Warmpath-Worker"))
		}
	}
	if s := do(t, "DELETE", url, ""); s.status != 200 || r.describe()[0].Workers[0].State != "up" {
		t.Errorf("%d %s", s.status, s.body)
	}
	if s := do(t, "POST", strings.Replace(url, "w1", "w9", 1), ""); s.status != 404 {
		t.Errorf("an unknown worker: %d", s.status)
	}
}

func TestResponsesStayWithTheirWorker(t *testing.T) {
	t.Parallel()
	f := sims(t, 4, vllmsim.Config{})
	r := start(t, settings("roundrobin", f.URLs()...), 4)
	for i := range 6 {
		first := r.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim","input":"number %d","stream":%v,"max_output_tokens":5}`, i, i%2 == 0), "X-Warmpath-Explain", "1")
		_, rest, _ := strings.Cut(first.body, `"id":"resp_`)
		id, _, _ := strings.Cut(rest, `"`)
		worker := first.header.Get("X-Warmpath-Worker")
		if first.status != 200 || id == "" {
			t.Fatalf("%d %s", first.status, first.body)
		}
		f := func(method, path, body string) {
			t.Helper()
			s := r.do(method, path, body, "X-Warmpath-Explain", "1")
			if s.status != 200 || s.header.Get("X-Warmpath-Worker") != worker {
				t.Errorf("%s %s: %d by %q; want 200 by %s: %s", method, path, s.status, s.header.Get("X-Warmpath-Worker"), worker, s.body)
			}
		}
		f("POST", "/v1/responses", `{"model":"sim","input":"more","max_output_tokens":5,"previous_response_id":"resp_`+id+`"}`)
		f("GET", "/v1/responses/resp_"+id, "")
	}
}

func TestEndpointsBesideV1(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	ask := func(path, body string, want int) {
		t.Helper()
		if s := r.do("POST", path, body); s.status != want {
			t.Errorf("%s: %d %.200s; want %d", path, s.status, s.body, want)
		}
	}
	ask("/tokenize", `{"model":"sim","prompt":"some words"}`, 200)
	ask("/tokenize", `{"model":"sim","prompt":"`+strings.Repeat("word ", (1<<20)/5)+`"}`, 413)
	ask("/detokenize", `{"model":"sim","tokens":[1,2,3]}`, 200)
	ask("/invocations", `{"model":"sim","prompt":"x","max_tokens":2}`, 200)
	ask("/completions", `{"model":"sim","prompt":"x","max_tokens":2}`, 200)
	ask("/v1/embeddings", `{"model":"sim","input":"x"}`, 200)
	ask("/pooling", `{"model":"sim","input":"x"}`, 200)
	ask("/rerank", `{"model":"sim","query":"x","documents":["a","b"]}`, 200)
	ask("/score", `{"model":"sim","text_1":"x","text_2":"y"}`, 200)
	ask("/sim/fault", `{}`, 404)
	ask("/metrics", `{}`, 404)
	if s := r.do("POST", "/v1/messages", `{"model":"nobody","messages":[]}`); s.status != 404 || !strings.Contains(s.body, `{"type":"error","error":{"type":"not_found_error"`) {
		t.Errorf("an unknown model of Anthropic's: %d %s", s.status, s.body)
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nnobody\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n"
	s := r.do("POST", "/v1/audio/transcriptions", form, "Content-Type", "multipart/form-data; boundary=b")
	if s.status != 404 {
		t.Errorf("a form with an unknown model: %d %s", s.status, s.body)
	}
	s = r.do("POST", "/v1/audio/transcriptions", strings.Replace(form, "nobody", "sim", 1), "Content-Type", "multipart/form-data; boundary=b")
	if s.status != 200 {
		t.Errorf("a form: %d %s", s.status, s.body)
	}
}

func TestHTTP10ClientsGetAWholeAnswer(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	body := `{"model":"sim","prompt":"x","max_tokens":5,"stream":true}`
	resp, text, _ := r.raw(fmt.Sprintf("POST /v1/completions HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	if resp.StatusCode != 200 || !strings.HasSuffix(text, "data: [DONE]\n\n") || len(resp.TransferEncoding) > 0 {
		t.Errorf("%d %v: %q", resp.StatusCode, resp.TransferEncoding, text)
	}
}

// TestNamedErrorsInA200LeaveTheWorkersUp: a request that every worker answers with an error of its own says nothing of
// the workers. Only one that ends what it accepted without a word is taken for draining.
func TestNamedErrorsInA200LeaveTheWorkersUp(t *testing.T) {
	t.Parallel()
	f := func(path, kind, answer string) {
		t.Helper()
		w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", kind)
			io.WriteString(rw, answer)
		})
		other := fakeWorker(t, w.Config.Handler.ServeHTTP)
		r := start(t, settings("roundrobin", w.URL, other.URL), 2)
		s := r.do("POST", path, `{"model":"sim","input":"x","messages":[{"role":"user","content":"x"}]}`)
		for _, w := range r.describe()[0].Workers {
			if w.State != "up" {
				t.Errorf("%s: %d, and %s is %s (%s); want up", answer, s.status, w.ID, w.State, w.Why)
			}
		}
	}
	const body, events = "application/json", "text/event-stream"
	f("/v1/responses", body, `{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"no"}}`)
	f("/v1/messages", body, `{"type":"error","error":{"type":"api_error","message":"no"}}`)
	f("/v1/chat/completions", body, `{"choices":[{"index":0,"message":{"content":null},"finish_reason":"error"}]}`)
	f("/v1/chat/completions", events, "data: {\"error\":{\"code\":\"context\",\"message\":\"no\"}}\n\ndata: [DONE]\n\n")
}

// TestCompressedStreamsGoThrough: a worker may compress its events although the router asks it not to. They go on as
// they come, and nothing is taken for a failure.
func TestCompressedStreamsGoThrough(t *testing.T) {
	t.Parallel()
	const first, second = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n", "data: [DONE]\n\n"
	goOn := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		io.WriteString(z, first)
		z.Flush()
		rw.(http.Flusher).Flush()
		select {
		case <-goOn:
		case <-r.Context().Done():
			return
		}
		io.WriteString(z, second)
		z.Close()
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	req, err := http.NewRequest("POST", "http://"+r.Addr()+"/v1/completions", strings.NewReader(aStream))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip") // else the client decodes it and hides the field
	resp, err := testClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(first))
	if _, err := io.ReadFull(z, got); err != nil || string(got) != first {
		t.Fatalf("%q %v; want the first event before the second is sent", got, err)
	}
	close(goOn)
	if rest, err := io.ReadAll(z); err != nil || string(rest) != second {
		t.Errorf("%q %v; want %q", rest, err, second)
	}
}
