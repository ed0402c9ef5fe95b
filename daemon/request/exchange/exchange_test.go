package exchange

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/request/message"
)

const (
	role   = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	word   = `data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\n"
	stop   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	abort  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}` + "\n\n"
	done   = "data: [DONE]\n\n"
	failed = `data: {"error":{"message":"engine","type":"InternalServerError","code":500}}` + "\n\n"
	good   = `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`
)

// TestExchange is the table of what workers do, and what the client sees: w0 comes first, as all are equal.
func TestExchange(t *testing.T) {
	f := func(what string, scripts []string, status int, body, by, end, attempts string) {
		t.Helper()
		var lists [][]string
		for _, script := range scripts {
			lists = append(lists, strings.Split(script, "|next|"))
		}
		got := newScene(t, lists...).chat()
		var tried []string
		for _, a := range got.in.Seen.Attempts {
			tried = append(tried, a.Worker+" "+a.Reason)
		}
		if got.status != status || got.by != by || got.in.Seen.End != end || strings.Join(tried, ", ") != attempts {
			t.Errorf("%s: %d by %q, end %q, tried %q; want %d by %q, %q, %q", what, got.status, got.by, got.in.Seen.End, tried, status, by,
				end, attempts)
		}
		if head, ok := strings.CutSuffix(body, "..."); ok && !strings.HasPrefix(got.body, head) || !ok && got.body != body {
			t.Errorf("%s: the client gets\n%s\nwant:\n%s", what, got.body, body)
		}
		if broken := end == "broken" || end == "hidden_failure"; got.broken != broken {
			t.Errorf("%s: the connection breaks off: %v", what, got.broken)
		}
	}
	whole200, stream200 := whole(200, good), streamed(role, word, stop, done)
	const all = role + word + stop + done
	const lost = `data: {"error":{"message":"the worker broke off in the middle of its answer",...`

	f("whole", []string{whole200}, 200, good, "w0", "", "")
	f("stream", []string{stream200}, 200, all, "w0", "", "")
	f("its own 400", []string{whole(400, `{"error":"bad"}`), whole200}, 400, `{"error":"bad"}`, "w0", "", "")
	named := `{"error":{"message":"bad","type":"BadRequestError","code":null}}`
	f("its 400 in a 200", []string{whole(200, named), whole200}, 200, named, "w0", "", "")
	f("the same as an event", []string{streamed("data: "+named+"\n\n", done), stream200}, 200, "data: "+named+"\n\n"+done, "w0", "", "")
	f("a bare 404 gets words", []string{whole(404, `{"detail":"Not Found"}`)}, 404, `{"error":{"message":"the worker serves no...`, "w0", "", "")

	// Before the first output, another worker is tried.
	f("refused", []string{"refuse", whole200}, 200, good, "w1", "", "w0 connect")
	f("closed", []string{"", stream200}, 200, all, "w1", "", "w0 no_answer")
	f("503", []string{whole(503, `{}`), whole200}, 200, good, "w1", "", "w0 worker_busy")
	f("cut in its head", []string{"HTTP/1.1 200 x\r\n", whole200}, 200, good, "w1", "", "w0 no_answer")
	f("cut in a whole answer", []string{whole200[:len(whole200)-5], whole200}, 200, good, "w1", "", "w0 no_answer")
	f("cut before output", []string{streamed(role, "cut"), stream200}, 200, all, "w1", "", "w0 no_answer")
	f("ended before output", []string{streamed(role), stream200}, 200, all, "w1", "", "w0 no_answer")
	f("failed before output", []string{streamed(role, failed, done), stream200}, 200, all, "w1", "", "w0 hidden_failure")
	f("failed in a 200", []string{whole(200, `{"error":{"type":"server_error"}}`), whole200}, 200, good, "w1", "", "w0 hidden_failure")
	f("aborted before output", []string{streamed(role, abort, done), stream200}, 200, all, "w1", "", "w0 hidden_failure")
	f("shutting down", []string{whole(500, `{"error":"cannot schedule new futures after shutdown"}`), whole200}, 200, good, "w1", "",
		"w0 hidden_failure")
	f("its engine is dead", []string{whole(500, `{"error":"EngineCore encountered an issue"}`), whole200}, 200, good, "w1", "",
		"w0 worker_dying")
	f("twice", []string{"refuse", "", whole200}, 200, good, "w2", "", "w0 connect, w1 no_answer")

	// No other worker is left.
	f("alone, it closed an idle connection", []string{"|next|" + whole200}, 200, good, "w0", "", "w0 no_answer")
	f("alone and down", []string{"refuse"}, 503, `{"error":{"message":"every worker that was tried failed...`, "", "worker_failed", "w0 connect")
	f("alone with 503", []string{whole(503, `{}`)}, 503, `{}`, "w0", "", "")
	f("twice without an answer", []string{"", "", whole200}, 503, `{"error":{"message":"every worker that was tried failed...`, "",
		"worker_failed", "w0 no_answer, w1 no_answer")
	f("alone with 500", []string{whole(500, `{}`)}, 500, `{}`, "w0", "", "")

	// After the first output, the client learns of it.
	f("cut", []string{streamed(role, word, pause, "cut"), stream200}, 200, role+word+lost, "w0", "broken", "")
	f("ended without an end", []string{streamed(role, word, pause), stream200}, 200, role+word+lost, "w0", "broken", "")
	f("cut in an event", []string{streamed(role, word, pause, stop[:20], pause, "cut"), stream200}, 200, role+word+lost, "w0", "broken", "")
	f("aborted", []string{streamed(role, word, pause, abort, done), stream200}, 200, role+word+lost, "w0", "hidden_failure", "")
}

// TestExchangeHandsOnAWorkersOwnErrorEvent: an error event that the worker sends itself goes to the client as it is,
// once.
func TestExchangeHandsOnAWorkersOwnErrorEvent(t *testing.T) {
	s := newScene(t, []string{streamed(role, word, pause, failed, done)})
	got := s.chat()
	if got.body != role+word+failed+done || got.broken || got.in.Seen.End != "hidden_failure" {
		t.Errorf("%q, broken %v, end %q", got.body, got.broken, got.in.Seen.End)
	}
}

// TestExchangeCounts: a request is counted once at each of its steps.
func TestExchangeCounts(t *testing.T) {
	f := func(want string, scripts ...[]string) {
		t.Helper()
		s := newScene(t, scripts...)
		s.chat()
		if got := strings.Join(s.counted.counted, ", "); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	good := []string{whole(200, good)}
	f("picked, first byte, ended", good)
	f("picked, retried p connect, first byte, ended", []string{"refuse"}, good)
	f("picked, refused worker_failed", []string{"refuse"})
}

// TestExchangeOfAGoneClient: a client that left before an answer gets none, and no worker is blamed for it.
func TestExchangeOfAGoneClient(t *testing.T) {
	s := newScene(t, []string{whole(200, good)})
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
	in.Epoch = s.epoch
	life := new(message.Life)
	life.End(message.ErrClientGone)
	asked := func(reason string) bool {
		a := in.Seen.Attempts
		return len(a) == 1 && a[0].Worker == "w0" && a[0].Reason == reason && in.Seen.Retries == 0
	}
	if out := s.Serve(life, in); out.Status != 499 || in.Seen.End != "client_gone" || !asked("client_gone") {
		t.Errorf("%d, end %q, tried %v", out.Status, in.Seen.End, in.Seen.Attempts)
	}
	in = inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
	in.Epoch = s.epoch
	life = new(message.Life)
	life.End(message.ErrDraining)
	if out := s.Serve(life, in); out.Status != 503 || in.Seen.End != "router_stopping" || !asked("router_stopping") {
		t.Errorf("%d, end %q, tried %v", out.Status, in.Seen.End, in.Seen.Attempts)
	}
}

// TestExchangeLeavesWhoIsLate: a request leaves a worker that sends no first byte within first_byte_retry, once.
func TestExchangeLeavesWhoIsLate(t *testing.T) {
	s := newScene(t, []string{strings.Repeat(pause, 20) + whole(200, good)}, []string{whole(200, good)})
	s.pool.FirstByteRetry = 50 * time.Millisecond
	got := s.chat()
	if got.status != 200 || got.by != "w1" || len(got.in.Seen.Attempts) != 1 || got.in.Seen.Attempts[0].Reason != "late" {
		t.Errorf("%d by %q, tried %v", got.status, got.by, got.in.Seen.Attempts)
	}
}

// TestExchangeKeepsWhatCannotBeSentAgain: first_byte_retry ends no request whose body the worker has already got in part
// from the client: no other worker could get it.
func TestExchangeKeepsWhatCannotBeSentAgain(t *testing.T) {
	slow := []string{strings.Repeat(pause, 20) + whole(200, good)}
	s := newScene(t, slow, slow)
	s.pool.FirstByteRetry = 50 * time.Millisecond
	const body = `{"model":"m","messages":[]}`
	in := inbound("POST", "/v1/chat/completions", body[:9])
	in.Tail, in.Left = &rest{Reader: *strings.NewReader(body[9:]), passed: true}, int64(len(body)-9)
	if got := s.ask(in); got.status != 200 || len(in.Seen.Attempts) != 0 {
		t.Errorf("%d by %q, tried %v", got.status, got.by, in.Seen.Attempts)
	}
}

// TestExchangeOfWhatIsNoStreamOfEvents: an answer of unknown length goes on as it comes. If it breaks off, only the
// connection's end can show it.
func TestExchangeOfWhatIsNoStreamOfEvents(t *testing.T) {
	const head = "HTTP/1.1 200 x\r\nContent-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + pause
	got := newScene(t, []string{head + "5\r\nworld\r\n0\r\n\r\n"}).chat()
	if got.body != "helloworld" || got.broken {
		t.Errorf("%q, broken %v", got.body, got.broken)
	}
	got = newScene(t, []string{head}).chat()
	if got.body != "hello" || !got.broken || got.in.Seen.End != "broken" {
		t.Errorf("%q, broken %v, end %q", got.body, got.broken, got.in.Seen.End)
	}
}

// TestExchangeKeepsConnectionsAlive: a comment before the first output goes to the client at once.
func TestExchangeKeepsConnectionsAlive(t *testing.T) {
	s := newScene(t, []string{streamed(": ping\n\n", pause, role, word, stop, done)})
	if got := s.chat(); got.body != ": ping\n\n"+role+word+stop+done || got.broken {
		t.Errorf("%q", got.body)
	}
}

// TestSize holds an Exchange, which a stream keeps for as long as it lasts, to the largest that the allocator gives 2,304
// bytes with its own word of 8. The next larger one gets 2,688.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Exchange{}); size > 2048 { // Go's next size is 2,304
		t.Errorf("an Exchange has %d bytes; want at most 2048", size)
	}
}
