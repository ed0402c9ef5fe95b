package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// twice is a worker that sends each 500th answer, about, once more: with it, a moment later, or when the next request
// has come on its connection, whose own answer then follows. Ids hold X-Request-Id, as vLLM's do.
type twice struct {
	sent  atomic.Int64 // answers that it has sent once more
	calm  atomic.Bool  // it sends none
	conns sync.Map     // net.Conn to *doubled
}

// doubled is a connection to the worker.
type doubled struct {
	mu   sync.Mutex // held while an answer is written
	owed []byte     // what goes out before the next answer
}

func (w *twice) handle(c *wire.Call) bool {
	if c.Path != chatPath {
		return c.Answer()
	}
	kept, _ := w.conns.LoadOrStore(c.Conn, new(doubled))
	l := kept.(*doubled)
	text := w.answer(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.owed) > 0 {
		if _, err := c.Write(l.owed); err != nil {
			return false
		}
		l.owed = nil
		time.Sleep(time.Millisecond) // another client's request may be there before the answer
	}
	if !w.calm.Load() && rand.IntN(500) == 0 {
		w.sent.Add(1)
		switch rand.IntN(3) {
		case 0:
			text = append(text, text...)
		case 1:
			l.owed = text
		default:
			time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { l.write(c.Conn, text) })
		}
	}
	_, err := c.Write(text)
	return err == nil
}

func (l *doubled) write(c net.Conn, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = c.Write(text) // the router may have closed it
}

// answer is a chat's answer that repeats the call's mark, whole or as a stream.
func (w *twice) answer(c *wire.Call) []byte {
	id, mark := "chatcmpl-"+fieldOf(c.Raw, "X-Request-Id"), c.Mark()
	if c.Query.Get("chunks") == "" {
		text := fmt.Sprintf(`{"id":"%s","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":"%s"},"finish_reason":"stop"}]}`, id, mark)
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(text), text)
	}
	b := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, end := range []string{"null", "null", `"stop"`} {
		e := fmt.Sprintf(`data: {"id":"%s","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}]}`+"\n\n",
			id, mark, end)
		b = fmt.Appendf(b, "%x\r\n%s\r\n", len(e), e)
	}
	return append(b, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"...)
}

// fieldOf returns the first value of a field of a head.
func fieldOf(head []byte, name string) string {
	for row := range strings.SplitSeq(string(head), "\r\n") {
		key, value, _ := strings.Cut(row, ":")
		if textproto.CanonicalMIMEHeaderKey(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

var anyMark = regexp.MustCompile(`m[0-9a-f]{16}`)

// apart is what clients saw.
type apart struct{ asked, right, foreign, failed atomic.Int64 }

func (a *apart) ask(c *wire.Client) {
	mark := newMark()
	request := plain(mark, "")
	if a.asked.Add(1)%2 == 0 {
		request = streaming(mark, 3, 0, "")
	}
	got := c.Do(request, true)
	found := anyMark.FindAll(got.Body, -1)
	for _, m := range found {
		if !bytes.Equal(m, []byte(mark)) {
			a.foreign.Add(1)
			return
		}
	}
	if got.Err != nil || got.Status != 200 || len(found) == 0 {
		a.failed.Add(1)
		return
	}
	a.right.Add(1)
}

// checkTwice has 32 clients read answers, each with a mark of its own, from workers that send one again now and then.
func checkTwice(l *lab) (verdict, error) {
	var nodes []*node
	w := &twice{}
	w.calm.Store(true)
	for range 3 {
		n := &node{}
		if _, err := l.startNode(n); err != nil {
			return verdict{}, err
		}
		n.Handle = w.handle // nobody has connected yet
		nodes = append(nodes, n)
	}
	r, err := l.inFrontOf("", "strategy = \"roundrobin\"\n", nodes...)
	if err != nil {
		return verdict{}, err
	}
	var a apart
	one := &wire.Client{Addr: r.Addr}
	for range 12 { // each worker shows what its ids hold, in both forms
		a.ask(one)
	}
	one.Close()
	w.calm.Store(false)
	n := pick(l, int64(20_000), 1_000_000)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			c := &wire.Client{Addr: r.Addr}
			defer c.Close()
			for a.right.Load()+a.foreign.Load() < n && l.ctx.Err() == nil {
				a.ask(c)
			}
		})
	}
	all.Wait()
	counted, err := r.metric("warmpath_foreign_answers_total")
	if err != nil {
		return verdict{}, err
	}
	return say(a.foreign.Load() == 0 && a.failed.Load() == 0 && counted > 0,
		"%d of %d answers to the wrong client, %d failed; %d sent twice, %.0f found by their ids",
		a.foreign.Load(), a.right.Load()+a.foreign.Load(), a.failed.Load(), w.sent.Load(), counted)
}
