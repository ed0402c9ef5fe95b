package daemon

import (
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// What workers say of a failure in the middle of a stream: vLLM on its endpoints, in its own words.
const (
	aToken      = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"first\",\"finish_reason\":null}]}\n\n"
	ownError    = "data: {\"error\":{\"message\":\"EngineCore encountered an issue. See stack trace (above) for the root cause.\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n"
	done        = "data: [DONE]\n\n"
	ownMessage  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"CUDA out of memory\"}}\n\n"
	aMessage    = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"first\"}}\n\n"
	aResponse   = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"first\",\"sequence_number\":1}\n\n"
	ownResponse = "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_1\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"CUDA out of memory\"}}}\n\n"
	anAbort     = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"abort\"}]}\n\n"
)

// inPieces is a worker that streams its answer in pieces, and who asks for it. The second piece waits until the first has
// come to the client: were both in one read of the router's, the answer would not have begun with the second.
func inPieces(t *testing.T, pieces []string, end string) (url string, ask func(r *running, path, body string) seen) {
	began := make(chan struct{})
	url = rawWorker(t, func(c *net.TCPConn) {
		io.WriteString(c, eventChunks)
		for i, p := range pieces {
			io.WriteString(c, chunk(p))
			if i == 0 {
				<-began
			}
			time.Sleep(20 * time.Millisecond)
		}
		io.WriteString(c, end)
	})
	return url, func(r *running, path, body string) seen {
		var once sync.Once
		begin := func() { once.Do(func() { close(began) }) }
		defer begin() // an answer that never begins ends here
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: begin})
		return doAs(ctx, t, "POST", "http://"+r.Addr()+path, body)
	}
}

// TestOwnErrorEventReachesTheClient: every byte of it, however the stream is cut into pieces, and the end that the
// worker gives it.
func TestOwnErrorEventReachesTheClient(t *testing.T) {
	t.Parallel()
	f := func(what, path, end string, whole bool, pieces ...string) {
		t.Helper()
		w, ask := inPieces(t, pieces, end)
		r := start(t, settings("roundrobin", w), 1)
		s := ask(r, path, `{"model":"sim","prompt":"x","messages":[{"role":"user","content":"x"}],"input":"x","max_tokens":2,"stream":true}`)
		want := strings.Join(pieces, "")
		if s.status != 200 || s.body != want || (s.err == nil) != whole || !whole && !errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d %v\ngot  %q\nwant %q", what, s.status, s.err, s.body, want)
		}
		eventually(t, "the worker's failure counted", func() bool {
			page := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body
			return r.state.Load().pools[0].route.Workers.Stats(time.Now())[0].Failed == 1 && strings.Contains(page, `code="502"`)
		})
	}
	const last = "0\r\n\r\n"
	f("chat", "/v1/chat/completions", last, true, strings.ReplaceAll(aToken, `"text":"first"`, `"delta":{"content":"first"}`), ownError, done)
	f("in one piece with the token", "/v1/completions", last, true, aToken, aToken+ownError+done)
	f("cut in two", "/v1/completions", last, true, aToken, aToken+ownError[:30], ownError[30:]+done)
	f("without [DONE]", "/v1/completions", last, true, aToken, ownError)
	f("then broken", "/v1/completions", "", false, aToken, ownError)
	f("Anthropic's", "/v1/messages", last, true, aMessage, ownMessage)
	f("responses", "/v1/responses", last, true, aResponse, ownResponse)
}

// TestTokensBeforeAnAbortReachTheClient: an abort is no error to a client, so the stream is ended by an event of
// ours; what came in the same read before it is the client's.
func TestTokensBeforeAnAbortReachTheClient(t *testing.T) {
	t.Parallel()
	f := func(what string, want string, pieces ...string) {
		t.Helper()
		w, ask := inPieces(t, pieces, "0\r\n\r\n")
		r := start(t, settings("roundrobin", w), 1)
		defer r.stop()
		s := ask(r, "/v1/completions", aStream)
		got, event, _ := strings.Cut(s.body, "data: {\"error\"")
		if s.status != 200 || got != want || !strings.Contains(event, "worker_broke_off") || !strings.HasSuffix(event, "\n\n") || !errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d %v\ngot  %q\nwant %q and our event", what, s.status, s.err, s.body, want)
		}
	}
	f("in one read", aToken+aToken+aToken, aToken, aToken+aToken+anAbort+done)
	f("the abort cut in two", aToken+aToken, aToken, aToken+anAbort[:20], anAbort[20:]+done)
	f("the token cut in two", aToken+aToken, aToken, aToken[:20], aToken[20:]+anAbort+done)
	f("alone", aToken, aToken, anAbort+done)
}

// TestFirstTokenBeforeAResetReachesTheClient: the token and the end of the connection may come together.
func TestFirstTokenBeforeAResetReachesTheClient(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*net.TCPConn){
		"reset":  reset,
		"closed": func(c *net.TCPConn) { c.Close() },
	} {
		w := rawWorker(t, func(c *net.TCPConn) {
			io.WriteString(c, eventChunks)
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, chunk(aToken))
			end(c)
		})
		r := start(t, settings("roundrobin", w), 1)
		s := r.do("POST", "/v1/completions", aStream)
		if !strings.HasPrefix(s.body, aToken) || !strings.Contains(s.body, `"code":"worker_broke_off"`) || strings.Contains(s.body, "[DONE]") ||
			s.status != 200 || !errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d %v %q; want the token, then our event and no clean end", what, s.status, s.err, s.body)
		}
		if n := r.inFlight(); n != 0 {
			t.Errorf("%s: %d in flight; want 0", what, n)
		}
		_ = r.stop()
	}
}

// TestOwnErrorEventOnSageMaker: the worker's words are payload, and the form's own exception follows them.
func TestOwnErrorEventOnSageMaker(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	w := rawWorker(t, func(c *net.TCPConn) {
		io.WriteString(c, eventChunks+chunk(aToken))
		select {
		case <-heard: // else a busy router may read both at once
		case <-time.After(20 * time.Second):
		}
		io.WriteString(c, chunk(ownError+done)+"0\r\n\r\n")
	})
	r := start(t, settings("roundrobin", w), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/endpoints/main/invocations-response-stream", "application/json", strings.NewReader(aStream))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body strings.Builder
	at := func(text string) int { return strings.Index(body.String(), text) }
	for some := make([]byte, 4096); at("first") < 0 && err == nil; {
		var n int
		n, err = resp.Body.Read(some)
		body.Write(some[:n])
	}
	close(heard)
	_, _ = io.Copy(&body, resp.Body)
	if resp.StatusCode != 200 || at("first") < 0 || at("EngineCore encountered") < at("first") || at("ModelStreamError") < at("EngineCore encountered") {
		t.Errorf("%d %v %q; want the token, the worker's words and a ModelStreamError", resp.StatusCode, err, body.String())
	}
}

// TestHeadAloneIsNoFirstByte: first_byte_retry waits for the first byte of the answer, whatever kind the head
// announced.
func TestHeadAloneIsNoFirstByte(t *testing.T) {
	t.Parallel()
	late := rawWorker(t, func(c *net.TCPConn) {
		io.WriteString(c, plainChunks)
		io.Copy(io.Discard, c) // until the router leaves
	})
	good := sims(t, 1, vllmsim.Config{})
	r := start(t, withPool(settings("roundrobin", late, good[0].URL()), `first_byte_retry = "1s"`), 2)
	for range 2 {
		if s := r.do("POST", "/v1/completions", aCompletion); s.status != 200 || s.err != nil {
			t.Errorf("%d %v %s", s.status, s.err, s.body)
		}
	}
}
