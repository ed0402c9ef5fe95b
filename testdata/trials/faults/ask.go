package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

const chatPath = "/v1/chat/completions"

// chat is a body whose prompt no other request has.
func chat(mark string, stream bool) string {
	return fmt.Sprintf(`{"model":"sim","stream":%v,"max_tokens":64,"messages":[{"role":"user","content":"%s %016x `+
		`tell me about it"}]}`, stream, mark, rand.Uint64())
}

// newMark returns a mark that is used once.
func newMark() string { return fmt.Sprintf("m%016x", rand.Uint64()) }

// plain is a request for one JSON.
func plain(mark, query string) []byte {
	return wire.Post(chatPath+"?mark="+mark+query, chat(mark, false))
}

// streaming is a request for a stream.
func streaming(mark string, chunks int, gap time.Duration, query string) []byte {
	return wire.Post(fmt.Sprintf("%s?mark=%s&chunks=%d&gap=%d%s", chatPath, mark, chunks, gap.Milliseconds(), query),
		chat(mark, true))
}

// good reports whether an answer is whole, 200 and its own.
func good(a wire.Answer, mark string) bool {
	return a.Err == nil && a.Status == 200 && bytes.Contains(a.Body, []byte(`"id":"`+mark+`"`)) &&
		foreign(a.Body, mark) == ""
}

// foreign returns a mark that stands in an answer and is not its own.
func foreign(body []byte, mark string) string {
	for {
		_, after, ok := bytes.Cut(body, []byte(`"id":"m`))
		if !ok {
			return ""
		}
		if !bytes.HasPrefix(after, []byte(mark[1:]+`"`)) {
			return "m" + string(after[:min(16, len(after))])
		}
		body = after
	}
}

// seen is what a client saw of a stream.
type seen struct {
	status  int
	events  int
	errored bool // an error event
	done    bool // [DONE]
	whole   bool // it ended as HTTP wants
	foreign string
	first   time.Time
	end     time.Time
	err     error
}

// fine reports whether a stream came whole.
func (s seen) fine() bool {
	return s.status == 200 && s.done && s.whole && !s.errored && s.events > 0 && s.foreign == ""
}

// told reports whether a stream broke as promised: an error event, no [DONE], no clean end.
func (s seen) told() bool { return s.errored && !s.done && !s.whole && s.foreign == "" }

func (s seen) String() string {
	return fmt.Sprintf("status %d, %d events, error event %v, [DONE] %v, clean end %v, %v", s.status, s.events, s.errored,
		s.done, s.whole, s.err)
}

// watch sends a request for a stream on a connection of its own and reads to the end. It calls each, if not nil, after
// each piece; each may end it by closing.
func watch(addr string, request []byte, mark string, each func(*wire.Conn, *seen)) (s seen) {
	defer func() { s.end = time.Now() }()
	c, err := wire.Dial(addr)
	if err != nil {
		s.err = err
		return s
	}
	defer c.Close()
	_, s.err = c.Write(request)
	if s.err != nil {
		return s
	}
	h, err := c.ReadHead()
	if err != nil {
		s.err = err
		return s
	}
	s.status = h.Status
	var carry []byte // a line that is not whole yet: reads cut anywhere
	s.err = c.ReadBody(h, func(piece []byte) {
		carry = append(carry, piece...)
		n := bytes.LastIndexByte(carry, '\n') + 1
		b := carry[:n]
		defer func() { carry = append(carry[:0], carry[n:]...) }()
		if s.first.IsZero() {
			s.first = time.Now()
		}
		s.events += bytes.Count(b, []byte("data: {"))
		s.errored = s.errored || bytes.Contains(b, []byte(`"error"`))
		s.done = s.done || bytes.Contains(b, []byte("[DONE]"))
		if f := foreign(b, mark); f != "" {
			s.foreign = f
		}
		if each != nil {
			each(c, &s)
		}
	})
	s.whole = s.err == nil
	return s
}

// some joins the first few of a list.
func some(list []string) string {
	if len(list) > 3 {
		list = append(list[:3:3], fmt.Sprintf("and %d more", len(list)-3))
	}
	return strings.Join(list, "; ")
}

// ms prints a duration.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }
