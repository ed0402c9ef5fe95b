package resume

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// blocks is where a stream of Anthropic's messages is that is written from a chat's.
type blocks struct {
	index  int    // of the open block, or of the next one
	kind   string // of the open block; "" = none is open
	reason []byte
	stop   []byte // the stop string, or null
}

const kindText = "text"

func marshal(v any) []byte {
	text, _ := json.Marshal(v) // of texts and numbers
	return text
}

// event appends an event; fields are its data behind the type.
func (j *Joined) event(kind string, fields ...[]byte) {
	j.out = slices.Concat(j.out, []byte("event: "+kind+"\ndata: {\"type\":\""+kind+"\""), slices.Concat(fields...),
		[]byte("}\n\n"))
}

// writeBlocks writes an event of a chat as those of messages.
func (j *Joined) writeBlocks(c *chunk) {
	b := &j.blocks
	if text := prompt.Inside(c.content); len(text) > 0 {
		j.open(kindText, []byte(`{"type":"text","text":""}`))
		j.delta("text_delta", "text", c.content)
	}
	prompt.Elements(c.calls, func(call []byte) bool {
		f := field(call, "function")
		if name := field(f, "name"); given(name) {
			j.open("tool_use", slices.Concat([]byte(`{"type":"tool_use","id":`), field(call, "id"), []byte(`,"name":`), name,
				[]byte(`,"input":{}}`)))
		}
		if arguments := field(f, "arguments"); given(arguments) {
			j.delta("input_json_delta", "partial_json", arguments)
		}
		return true
	})
	if c.finish == nil {
		return
	}
	b.reason, b.stop = []byte(`"end_turn"`), []byte("null")
	switch {
	case string(c.finish) == `"length"`:
		b.reason = []byte(`"max_tokens"`)
	case string(c.finish) == `"tool_calls"`:
		b.reason = []byte(`"tool_use"`)
	case given(c.stopped) && c.stopped[0] == '"':
		b.reason, b.stop = []byte(`"stop_sequence"`), c.stopped
	}
	b.stop = slices.Clone(b.stop)
}

func (j *Joined) delta(kind, name string, value []byte) {
	j.event("content_block_delta", []byte(`,"delta":{"type":"`+kind+`","`+name+`":`), value,
		[]byte(`},"index":`), number(j.blocks.index))
}

// open begins a block. Text goes on in an open one.
func (j *Joined) open(kind string, block []byte) {
	b := &j.blocks
	if b.kind == kind && kind == kindText {
		return
	}
	j.close()
	b.kind = kind
	j.event("content_block_start", []byte(`,"content_block":`), block, []byte(`,"index":`), number(b.index))
}

// close ends the open block.
func (j *Joined) close() {
	b := &j.blocks
	if b.kind != "" {
		j.event("content_block_stop", []byte(`,"index":`), number(b.index))
		b.index++
		b.kind = ""
	}
}

// endBlocks writes the end of the message.
func (j *Joined) endBlocks() {
	b := &j.blocks
	if b.reason == nil {
		j.err = io.ErrUnexpectedEOF
		return
	}
	j.close()
	input, output := j.d.split(j.usage)
	j.event("message_delta", []byte(`,"delta":{"stop_reason":`), b.reason, []byte(`,"stop_sequence":`), b.stop,
		[]byte(`},"usage":{"input_tokens":`), number(input), []byte(`,"output_tokens":`), number(output), []byte("}"))
	j.event("message_stop")
}
