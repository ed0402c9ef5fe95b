package resume

import (
	"bytes"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// Bounds of what is kept for one stream. A request or an answer above them is not continued.
const (
	maxBody  = 4 << 20
	maxText  = 1 << 20 // some 250,000 tokens
	maxEvent = 256 << 10
)

// Draft is what a client has of one streamed answer, and what is needed to ask for the rest. Not safe for concurrent
// use.
type Draft struct {
	kind  prompt.Kind
	asked asked
	part  []byte // of an event whose end has not come
	over  bool   // the answer has ended, or has what cannot be continued

	id, created []byte // as the first event has them, in JSON
	item        []byte // of responses: the id of the message
	opened      bool   // the block of messages, or the part of responses, has begun
	next        int    // of responses: the number of the next event
	text        []byte // inside of a JSON string
	pieces      int    // events with text
	written     int    // tokens of text, as the engine counts them; 0 = not known
	prompt      int    // tokens of the prompt, likewise

	promptIDs []byte // in JSON
	ids       []byte // of the tokens so far, each with a comma before it
	whole     int    // bytes of ids whose text the client has
	exact     bool   // and no more text than theirs
}

// New begins a draft of a streamed answer to a request. It keeps the body. nil: the request is of a kind that no other
// worker can go on with.
func New(kind prompt.Kind, body []byte) *Draft {
	d := &Draft{kind: kind}
	if len(body) > maxBody || !d.asked.read(kind, body) {
		return nil
	}
	return d
}

// Text returns what the client has.
func (d *Draft) Text() string { return unquoted(d.text) }

// Count sets how many tokens the prompt has and how many have come, as far as that is known: not 0. It reports whether
// the latter is known now.
func (d *Draft) Count(promptTokens, output int) (exact bool) {
	if promptTokens > 0 {
		d.prompt = promptTokens
	}
	if output > 0 {
		d.written = output
	}
	return d.written > 0 || d.byIDs() || len(d.text) == 0
}

// Lacks reports whether the first of these events, which ends the answer, has text: an engine may send its last tokens
// with the reason to finish.
func (d *Draft) Lacks(events []byte) bool {
	var c chunk
	data, ok := dataOf(events[:max(0, sse.FirstEnd(events, 0))])
	return ok && data != nil && c.read(data) && len(prompt.Inside(c.text))+len(prompt.Inside(c.content)) > 0
}

// Next returns the number of the next event of responses.
func (d *Draft) Next() int { return d.next }

// Over reports whether the answer has ended, or cannot be continued any more.
func (d *Draft) Over() bool { return d.over }

// Feed takes the next bytes that the client gets.
func (d *Draft) Feed(p []byte) {
	for len(p) > 0 && !d.over {
		piece := p
		if len(d.part) > 0 {
			d.part = append(d.part, p...)
			piece = d.part
		}
		end := sse.FirstEnd(piece, 0)
		if end < 0 {
			if len(d.part) == 0 {
				d.part = append(d.part, p...)
			}
			d.over = len(d.part) > maxEvent
			return
		}
		taken := end - (len(piece) - len(p))
		d.readEvent(piece[:end])
		d.part, p = d.part[:0], p[taken:]
		d.over = d.over || len(d.text) > maxText
	}
}

var dataField = []byte("data:")

// dataOf returns the data of an event. ok is false if it has several lines of them, as no engine writes.
func dataOf(event []byte) (data []byte, ok bool) {
	for line := range bytes.SplitSeq(event, []byte{'\n'}) {
		if value, is := bytes.CutPrefix(line, dataField); is {
			if data != nil {
				return nil, false
			}
			data = bytes.TrimSpace(value)
			data = data[:len(data):len(data)]
		}
	}
	return data, true
}

func (d *Draft) readEvent(event []byte) {
	data, ok := dataOf(event)
	switch {
	case !ok:
		d.over = true
	case data == nil: // a comment
	case d.kind == prompt.Responses, d.kind == prompt.Messages:
		d.readTyped(data)
	default:
		d.readChunk(data)
	}
}

// write adds to the text.
func (d *Draft) write(raw []byte) {
	if in := prompt.Inside(raw); len(in) > 0 {
		d.text = append(d.text, in...)
		d.pieces++
	}
}

// keep sets what the first event names.
func keep(dst *[]byte, value []byte) {
	if *dst == nil {
		*dst = bytes.Clone(value)
	}
}

// readChunk reads an event of a chat or a completion.
func (d *Draft) readChunk(data []byte) {
	var c chunk
	if !c.read(data) || c.fails || c.finish != nil || c.calls != nil || c.strange || c.index != 0 {
		d.over = true // [DONE] too
		return
	}
	keep(&d.id, c.id)
	keep(&d.created, c.created)
	if c.promptIDs != nil {
		keep(&d.promptIDs, c.promptIDs)
	}
	if c.usage.known {
		d.prompt, d.written = c.usage.prompt, c.usage.output
	}
	if d.kind == prompt.Chat {
		d.write(c.content)
		return
	}
	n := 0
	prompt.Elements(c.ids, func(id []byte) bool {
		d.ids = append(append(d.ids, ','), id...)
		n++
		return true
	})
	if len(prompt.Inside(c.text)) > 0 {
		d.whole, d.exact = len(d.ids), n == 1 // of several the last ones may have no text yet
		d.write(c.text)
	}
}

// readTyped reads an event of Anthropic's messages or of responses. Either has kinds of its own.
func (d *Draft) readTyped(data []byte) {
	if number := field(data, "sequence_number"); number != nil {
		d.next = integer(number) + 1
	}
	begin := func(part, kind string) {
		d.over = d.opened || string(field(field(data, part), "type")) != kind
		d.opened = true
	}
	switch delta := field(data, "delta"); string(prompt.Inside(field(data, "type"))) {
	case "ping", "response.in_progress", "response.queued":
	case "message_start":
		message, u := field(data, "message"), usage{}
		keep(&d.id, field(message, "id"))
		u.read(field(message, "usage"))
		d.prompt = u.prompt
	case "response.created":
		keep(&d.id, field(field(data, "response"), "id"))
		keep(&d.created, field(field(data, "response"), "created_at"))
	case "response.output_item.added":
		item := field(data, "item")
		d.over = d.item != nil || string(field(item, "type")) != `"message"`
		keep(&d.item, field(item, "id"))
	case "response.content_part.added":
		begin("part", `"output_text"`)
	case "content_block_start":
		begin("content_block", `"text"`)
		d.over = d.over || string(field(data, "index")) != "0"
		d.write(field(field(data, "content_block"), "text"))
	case "content_block_delta":
		d.over = string(field(delta, "type")) != `"text_delta"`
		d.write(field(delta, "text"))
	case "response.output_text.delta":
		// vLLM before 0.13 numbers the deltas so, and continues no message
		d.over = string(field(data, "content_index")) != "0" || len(field(data, "logprobs")) > len("[]")
		d.write(delta)
	default: // an event that is no JSON, too
		d.over = true
	}
}

// tokens returns how many tokens the text has.
func (d *Draft) tokens() int {
	switch {
	case d.byIDs():
		return bytes.Count(d.ids[:d.whole], []byte{','})
	case d.written > 0:
		return d.written
	}
	return d.pieces
}

// byIDs reports whether the token ids of the prompt and of the text are known. With stop strings the engine holds text
// back whose ids have come.
func (d *Draft) byIDs() bool {
	return d.exact && d.whole > 0 && (d.promptIDs != nil || d.asked.isList()) && len(d.asked.stops) == 0
}

// split returns the counts of the whole answer by the engine's of its second half.
func (d *Draft) split(second usage) (promptTokens, output int) {
	sum := second.prompt + second.output
	promptTokens = d.prompt
	if promptTokens == 0 {
		promptTokens = second.prompt - d.tokens()
	}
	if promptTokens <= 0 || promptTokens > second.prompt {
		promptTokens = second.prompt
	}
	return promptTokens, sum - promptTokens
}

func quoted(raw []byte) []byte { return append(append([]byte{'"'}, raw...), '"') }

func number(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }
