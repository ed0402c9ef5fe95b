package bugs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A client that has read the last event and closes was served, although the end of the body comes 0.3 s later.
var ends = []wallCase{
	{"a-client-that-closes-at-done-was-served", closes(chatPath, engine.Done, engine.Role, engine.Delta(`{"content":"word"}`, "null"),
		engine.Stop, engine.Done)},
	{"a-client-that-closes-at-done-of-completions-was-served", closes("/v1/completions", engine.Done,
		`data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"word","finish_reason":"stop"}]}`+"\n\n", engine.Done)},
	{"a-client-that-closes-at-message-stop-was-served", closes("/v1/messages", "message_stop", messageStart, textStart, messageEnd)},
	{"a-client-that-closes-at-response-completed-was-served", closes("/v1/responses", "response.completed",
		response("response.created"), named(`"type":"response.output_text.delta","delta":"text","output_index":0,`+
			`"content_index":0,"item_id":"m"`), strings.ReplaceAll(response("response.completed"), "in_progress", "completed"))},
	{"a-client-that-closes-before-the-end-is-gone", closesEarly},
}

// closes reads a stream until the last event and closes.
func closes(path, last string, events ...string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		line := l.closing(path, last, events)
		return endOf(line), strings.Contains(line, `"status":200`) && !strings.Contains(line, "client_gone")
	}
}

// closesEarly is a control: who closes in the middle is gone.
func closesEarly(l *lab) (string, bool) {
	line := l.closing(chatPath, "word", []string{engine.Role, engine.Delta(`{"content":"word"}`, "null")})
	return endOf(line), strings.Contains(line, "client_gone")
}

// closing plays it and returns the line of the access log.
func (l *lab) closing(path, last string, events []string) string {
	log := filepath.Join(l.dir, "access.log")
	e := l.engine(&engine.Engine{Post: func(c *wire.Call) bool {
		_ = c.StreamHead()
		for _, ev := range events {
			_ = c.Chunk(ev)
		}
		time.Sleep(300 * time.Millisecond)
		return engine.End(c)
	}})
	r := l.routerWith(rig.Router{Server: fmt.Sprintf("access_log = %q\n", log)}, e)
	c, err := wire.Dial(r.Addr)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(wire.Post(path, chat("question", streamed, `"prompt":"x"`, `"input":"x"`, `"max_tokens":9`)))
	var got []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(got, []byte(strings.TrimSpace(last))) {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	_ = c.Conn.Close()
	line := ""
	rig.Eventually(5*time.Second, func() bool {
		text, _ := os.ReadFile(log)
		for s := range strings.Lines(string(text)) {
			if strings.Contains(s, path) {
				line = s
			}
		}
		return line != ""
	})
	return line
}

// endOf is what a line of the access log says of the end.
func endOf(line string) string {
	_, rest, ok := strings.Cut(line, `"end":`)
	if !ok {
		return fmt.Sprintf("no end in %.200q", line)
	}
	end, _, _ := strings.Cut(rest, ",")
	return "end " + strings.Trim(strings.TrimSpace(end), `"}`)
}
