package bugs

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A healthy worker's stream may be silent for minutes, as while a parser holds a long call of a tool. Either the default
// of stream_timeout is 10 minutes at least, or a worker whose metrics move is not cut: the case plays that with a timeout
// of 2 s and a silence of 6.
var begunStreams = []wallCase{
	{"a-healthy-silent-stream-of-chat-is-not-cut", silentStream(chatPath, []string{engine.Role,
		engine.Delta(`{"content":"I write the file."}`, "null")}, engine.Stop+engine.Done)},
	{"a-healthy-silent-stream-of-completions-is-not-cut", silentStream("/v1/completions",
		[]string{`data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"I","finish_reason":null}]}` + "\n\n"},
		`data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"!","finish_reason":"stop"}]}`+"\n\n"+
			engine.Done)},
	{"a-healthy-silent-stream-of-messages-is-not-cut", silentStream("/v1/messages", []string{messageStart, textStart},
		messageEnd)},
}

var timeout = regexp.MustCompile(`(?m)^stream_timeout\s+= "([^"]+)"`)

func silentStream(path string, first []string, last string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		defaults, err := exec.Command(built, "check", "--defaults").Output()
		m := timeout.FindSubmatch(defaults)
		if err != nil || m == nil {
			l.t.Fatalf("no stream_timeout in `check --defaults`: %v", err)
		}
		bound, err := time.ParseDuration(string(m[1]))
		if err == nil && bound >= 10*time.Minute {
			return fmt.Sprintf("stream_timeout is %v", bound), true
		}
		began := time.Now()
		e := l.engine(&engine.Engine{
			Post: func(c *wire.Call) bool {
				_ = c.StreamHead()
				_ = c.Chunk(strings.Join(first, ""))
				return !c.Wait(6*time.Second) && c.Chunk(last) == nil && engine.End(c)
			},
			Metrics: func() string { return running(1, 0, int(time.Since(began)/(10*time.Millisecond))) },
		})
		r := l.routerWith(rig.Router{Pool: "stream_timeout = \"2s\"\n"}, e)
		a := r.post(path, chat("question", streamed, `"prompt":"x"`, `"max_tokens":99`))
		whole := a.Err == nil && strings.HasSuffix(string(a.Body), last)
		return fmt.Sprintf("stream_timeout is %v; with 2 s a silence of 6 s is cut: %v", bound, !whole), whole
	}
}

// running is a page of metrics: requests that run and wait, tokens made so far.
func running(run, wait, tokens int) string {
	page := wire.Metrics(32768)
	page = strings.Replace(page, `num_requests_running{engine="0",model_name="sim"} 0.0`,
		fmt.Sprintf(`num_requests_running{engine="0",model_name="sim"} %d.0`, run), 1)
	page = strings.Replace(page, `num_requests_waiting{engine="0",model_name="sim"} 0.0`,
		fmt.Sprintf(`num_requests_waiting{engine="0",model_name="sim"} %d.0`, wait), 1)
	return page + fmt.Sprintf("# TYPE vllm:generation_tokens_total counter\n"+
		"vllm:generation_tokens_total{engine=\"0\",model_name=\"sim\"} %d.0\n", tokens)
}

// firstPieces: what a router does not know counts as output. Four such pieces come 0.4 s apart, then text; the first must
// reach the client at once.
var firstPieces = []wallCase{
	{"unknown-first-pieces-of-chat-pass-at-once", passes(chatPath, engine.Role, chatPieces, engine.Delta(`{"content":"text"}`, "null")+
		engine.Stop+engine.Done)},
	{"unknown-first-pieces-of-responses-pass-at-once", passes("/v1/responses", response("response.created"), responsePieces,
		named(`"type":"response.output_text.delta","delta":"text","output_index":1,"content_index":0,"item_id":"m"`)+
			response("response.completed"))},
	{"unknown-first-pieces-of-messages-pass-at-once", passes("/v1/messages", messageStart, messagePieces, textStart+messageEnd)},
	{"a-ping-of-messages-passes-at-once", passes("/v1/messages", messageStart, []string{named(`"type":"ping"`)}, textStart+messageEnd)},
	{"token-ids-without-text-pass-at-once", passes("/v1/completions", "", []string{
		`data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"","token_ids":[1,2],"finish_reason":null}]}` + "\n\n"},
		`data: {"id":"c","object":"text_completion","choices":[{"index":0,"text":"text","finish_reason":"stop"}]}`+"\n\n"+engine.Done)},
	{"an-unknown-event-passes-at-once", passes("/v1/responses", response("response.created"), []string{
		named(`"type":"response.hologram.delta","delta":"x"`), named(`"type":"vendor.progress","percent":3`)},
		response("response.completed")+"data: text\n\n")},
}

var chatPieces = pieces(`"reasoning":"hm"`, `"reasoning_content":"hm"`, `"refusal":"no"`, `"audio":{"id":"a","data":"UklGRg=="}`,
	`"images":[{"type":"image_url","image_url":{"url":"data:,x"}}]`, `"function_call":{"name":"f","arguments":"{"}`,
	`"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":""}}]`,
	`"reasoning_details":[{"text":"x"}]`, `"annotations":[{"type":"url_citation"}]`, `"x_custom":"y"`, `"video":{"id":"v"}`)

func pieces(deltas ...string) (all []string) {
	for _, d := range deltas {
		all = append(all, engine.Delta("{"+d+"}", "null"))
	}
	return all
}

var responsePieces = []string{
	named(`"type":"response.web_search_call.searching","output_index":0,"item_id":"w"`),
	named(`"type":"response.reasoning_text.delta","delta":"hm","output_index":0,"content_index":0,"item_id":"x"`),
	named(`"type":"response.mcp_call.in_progress","output_index":0,"item_id":"x"`),
	named(`"type":"response.image_generation_call.generating","output_index":0,"item_id":"x"`),
	named(`"type":"response.code_interpreter_call.interpreting","output_index":0,"item_id":"x"`),
}

var messagePieces = []string{
	named(`"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"1","name":"web_search","input":{}}`),
	named(`"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`),
	named(`"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}`),
	named(`"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"1","name":"f","input":{}}`),
}

var (
	messageStart = named(`"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"sim",` +
		`"content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}`)
	textStart = named(`"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}`) +
		named(`"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"text"}`)
	messageEnd = named(`"type":"content_block_stop","index":0`) +
		named(`"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}`) + named(`"type":"message_stop"`)
)

func response(kind string) string {
	return named(fmt.Sprintf(`"type":%q,"response":{"id":"r1","status":"in_progress","output":[]}`, kind))
}

// passes sends a stream for each kind of piece: the opening, the piece four times, the end.
func passes(path, opening string, kinds []string, last string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		e := l.engine(&engine.Engine{Post: func(c *wire.Call) bool {
			_ = c.StreamHead()
			if opening != "" {
				_ = c.Chunk(opening)
			}
			for range 4 {
				kind, _ := strconv.Atoi(c.Query.Get("kind"))
				_ = c.Chunk(kinds[kind])
				if c.Wait(400 * time.Millisecond) {
					return false
				}
			}
			return c.Chunk(last) == nil && engine.End(c)
		}})
		r := l.router(e)
		took := make([]time.Duration, len(kinds))
		all := every(0, len(kinds), func(i int) (a wire.Answer) {
			a, took[i] = firstByte(r.Addr, wire.Request("POST", fmt.Sprintf("%s?kind=%d", path, i), chat("question", streamed,
				`"prompt":"x"`, `"input":"x"`, `"max_tokens":9`), "Content-Type: application/json"))
			return a
		})
		late := 0
		for _, d := range took {
			if d > time.Second {
				late++
			}
		}
		return fmt.Sprintf("%d of %d kinds late, %d spoilt", late, len(kinds), unlike(all, "text")), late+unlike(all, "text") == 0
	}
}

// firstByte sends a request and returns the answer, and when its body began.
func firstByte(addr string, request []byte) (a wire.Answer, first time.Duration) {
	c, err := wire.Dial(addr)
	if err != nil {
		return wire.Answer{Err: err}, 0
	}
	defer c.Close()
	began := time.Now()
	_, _ = c.Write(request)
	a.Head, a.Err = c.ReadHead()
	if a.Err == nil {
		a.Err = c.ReadBody(a.Head, func(b []byte) {
			if first == 0 {
				first = time.Since(began)
			}
			a.Body = append(a.Body, b...)
		})
	}
	return a, first
}
