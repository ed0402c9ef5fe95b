package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// health is a request for a page.
const health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

// asksStream is a request whose answer is a stream. Its connection is taken over from fasthttp, and given back.
const asksStream = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nstream"

// ownWords are what differs from one answer to another.
var ownWords = regexp.MustCompile(`[0-9a-f]{32}`)

// answersTo returns what a client reads of the answers to a text that it sends in pieces, until the connection ends or
// that many have come: status, fields in any order but the date, body, and whether the connection stays. Before it sends
// first, of which the answer does not count.
func (r *running) answersTo(first string, answers int, pieces ...string) (read []string) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	in := bufio.NewReader(c)
	if first != "" {
		io.WriteString(c, first)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
	}
	for i, p := range pieces {
		if i > 0 {
			time.Sleep(20 * time.Millisecond) // most often it comes alone
		}
		io.WriteString(c, p)
	}
	for range answers {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return append(read, "end")
		}
		text, err := io.ReadAll(resp.Body)
		resp.Header.Del("Date")
		read = append(read, ownWords.ReplaceAllString(fmt.Sprintf("%d %v %v %s %v", resp.StatusCode, resp.Close, resp.Header, text,
			err), "id"))
		if resp.Close {
			if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
				read = append(read, fmt.Sprintf("behind the last answer: %q, %v", rest, err))
			}
			break
		}
	}
	return read
}

// answerByWord is a worker whose answer the body names.
func answerByWord(rw http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	switch text := string(b); {
	case strings.Contains(text, "stream"):
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, strings.Repeat("data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n", 3)+"data: [DONE]\n\n")
	case strings.Contains(text, "large"):
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, strings.Repeat("y", 100_000))
	case strings.Contains(text, "empty"):
		rw.WriteHeader(http.StatusNoContent)
	case strings.Contains(text, "untyped"):
		rw.Header()["Content-Type"] = nil
		io.WriteString(rw, "some text")
	case strings.Contains(text, "blank type"):
		rw.Header().Set("Content-Type", "")
		io.WriteString(rw, "some text")
	case strings.Contains(text, "cookies"):
		rw.Header().Add("Set-Cookie", "a=b")
		rw.Header().Add("Set-Cookie", "c=d")
		io.WriteString(rw, completion)
	case strings.Contains(text, "wrong"):
		rw.WriteHeader(http.StatusBadRequest)
		io.WriteString(rw, `{"error":{"message":"no"}}`)
	default:
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"got":%d}`, len(b))
	}
}

// TestAnswersOnAnyConnection holds what a client reads on a new connection to what it reads behind a page and behind a
// stream, request by request.
func TestAnswersOnAnyConnection(t *testing.T) {
	t.Parallel()
	w := fakeWorker(t, answerByWord)
	r := start(t, withServer(settings("roundrobin", w.URL), "read_timeout = \"1s\"\nmax_body_bytes = 300_000\n"+
		`cors_origins = ["https://chat.example.com"]`), 1)
	f := func(answers int, pieces ...string) {
		t.Helper()
		fresh := strings.Join(r.answersTo("", answers, pieces...), "\n")
		if strings.Contains(fresh, "some text") && strings.Contains(fresh, "text/plain") {
			t.Errorf("%.300q: the worker gave no type, and its client got\n%s", pieces, fresh)
		}
		for _, first := range []string{health, asksStream} {
			if later := strings.Join(r.answersTo(first, answers, pieces...), "\n"); later != fresh {
				t.Errorf("%.300q: on a new connection\n%.1000s\nand behind %.30q\n%.1000s", pieces, fresh, first, later)
			}
		}
	}
	post := func(body string, lines ...string) string {
		return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", strings.Join(lines, ""),
			len(body), body)
	}
	small := post(`{"model":"sim"}`)
	f(1, small)
	f(2, small+small)
	f(3, small+post("stream")+small)
	f(2, small[:len(small)-3], small[len(small)-3:]+small)
	f(1, small[:30], small[30:])
	f(2, small+small[:40], small[40:])
	f(2, small+health)
	f(2, small+"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
	f(2, small+post("{}", "Connection: close\r\n"))
	for _, body := range []string{"stream", "large", "empty", "untyped", "blank type", "cookies", "wrong"} {
		f(2, post(body)+small)
		f(1, post(body, "Origin: https://chat.example.com\r\n"))
	}
	for _, n := range []int{20_000, 32_600, 32_800, 65_600, 200_000} { // around the sizes of a buffer
		long := post(strings.Repeat("x", n))
		f(2, long, small)
		f(2, long[:1000], long[1000:]+small)
		f(2, long[:n/2], long[n/2:n/2+100], long[n/2+100:], small)
	}
	f(1, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 300001\r\n\r\n{")
	f(1, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
	f(1, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	f(1, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{")
	f(1, "POST /v1/a/../b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	f(1, "POST /v1/a//b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	f(2, "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"+small)
	f(1, "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:80\r\ncontent-length: 2\r\nx-Request-ID: mine\r\n\r\n{}")
	for _, probe := range framingProbes {
		f(1, "POST /v1/completions HTTP/1.1\r\n"+probe.head+"\r\n"+probe.body)
	}
	eventually(t, "no request left", func() bool { return r.front.Stats().InFlight == 0 && r.inFlight() == 0 })
}
