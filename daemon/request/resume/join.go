package resume

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// ErrOther is the error of a second stream that does not go on with the first.
var ErrOther = errors.New("resume: the other worker's answer is no continuation")

// sure is how many bytes of the beginning of a text show that a worker begins it anew.
const sure = 16

// Joined reads another worker's stream as the client gets it. Not safe for concurrent use.
type Joined struct {
	d    *Draft
	from io.Reader
	in   []byte
	out  []byte
	at   int   // of out: was read
	err  error // after out

	ends    []ending // of the text's end: stop strings that it may have begun
	begins  string   // the beginning of the text, if it may come again
	came    string   // the second text, while it may be one of these
	held    [][]byte // its events
	watches bool     // the beginning of the second text is looked at

	usage  usage
	hides  bool   // the client has not asked for it
	id     []byte // the second one of the answer
	item   []byte // of responses: the second one of the message
	parted bool   // its part has begun
	blocks blocks // of messages
}

// ending is what completes a stop string.
type ending struct{ rest, stop string }

// Join makes a reader of the client's stream from another worker's answer to the request of Ask.
func (d *Draft) Join(from io.Reader) *Joined {
	j := &Joined{d: d, from: from, watches: true}
	text := d.Text()
	for _, stop := range d.asked.stops {
		for n := min(len(stop)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				j.ends = append(j.ends, ending{rest: stop[n:], stop: stop})
			}
		}
	}
	if d.opened && d.kind == prompt.Messages {
		j.blocks.kind = kindText
	}
	if n := min(len(text), 4*sure); n >= sure && !strings.Contains(text[1:], text[:n/2]) {
		j.begins = text[:n]
	}
	return j
}

// Usage returns the tokens of the whole answer so far. known is false if the second worker does not count them.
func (j *Joined) Usage() (promptTokens, output int, known bool) {
	if !j.usage.known {
		return 0, 0, false
	}
	promptTokens, output = j.d.split(j.usage)
	return promptTokens, output, true
}

// Read implements io.Reader. It returns whole events, as far as p has room.
func (j *Joined) Read(p []byte) (int, error) {
	for j.at == len(j.out) {
		if j.err != nil || len(p) == 0 {
			return 0, j.err
		}
		j.fill()
	}
	n := copy(p, j.out[j.at:])
	j.at += n
	return n, nil
}

// fill reads once more, and makes the whole events ready.
func (j *Joined) fill() {
	j.out, j.at = j.out[:0], 0
	j.in = slices.Grow(j.in, 4<<10)
	n, err := j.from.Read(j.in[len(j.in):cap(j.in)])
	j.in = j.in[:len(j.in)+n]
	for j.err == nil {
		end := sse.FirstEnd(j.in, 0)
		if end < 0 {
			break
		}
		j.take(j.in[:end])
		j.in = j.in[:copy(j.in, j.in[end:])]
	}
	switch {
	case j.err != nil:
	case len(j.in) > maxEvent+len(j.d.text):
		j.err = ErrOther
	case err == io.EOF && len(j.in) > 0:
		j.err = io.ErrUnexpectedEOF
	default:
		j.err = err
	}
}

// take makes one event ready.
func (j *Joined) take(event []byte) {
	data, ok := dataOf(event)
	switch {
	case !ok:
		j.err = ErrOther
	case data == nil:
		j.out = append(j.out, event...)
	case j.d.kind == prompt.Responses:
		j.takeItem(event, data)
	default:
		j.takeChunk(event, data)
	}
}

// text looks at the next piece of the second text, which an event brings. It reports whether the event goes out, and
// those that were held before it.
func (j *Joined) text(event, raw []byte) (goes bool) {
	if !j.watches || len(raw) == 0 {
		return true
	}
	j.came += unquoted(raw)
	maybe := false
	for _, e := range j.ends {
		if strings.HasPrefix(j.came, e.rest) {
			j.stopAt(event, e)
			return false
		}
		maybe = maybe || strings.HasPrefix(e.rest, j.came)
	}
	if j.begins != "" && strings.HasPrefix(j.came, j.begins) {
		j.err = ErrOther
		return false
	}
	if maybe || j.begins != "" && strings.HasPrefix(j.begins, j.came) {
		j.held = append(j.held, bytes.Clone(event))
		return false
	}
	j.release()
	return true
}

// release passes the held events on.
func (j *Joined) release() {
	j.watches = false
	held := j.held
	j.held = nil
	for _, event := range held {
		j.take(event)
	}
}

// takeChunk takes an event of a chat or a completion.
func (j *Joined) takeChunk(event, data []byte) {
	if string(data) == "[DONE]" {
		j.release()
		j.done()
		return
	}
	var c chunk
	switch {
	case !c.read(data) || c.strange || c.index != 0:
		j.err = ErrOther
		return
	case c.fails: // the other worker broke off, too
		j.err = io.ErrUnexpectedEOF
		return
	}
	keep(&j.id, c.id)
	text := prompt.Inside(c.content)
	if j.d.kind == prompt.Completion {
		text = prompt.Inside(c.text)
	}
	switch {
	case c.role != nil && len(text) == 0 && c.calls == nil && c.finish == nil: // the client has one
		return
	case !j.text(event, text):
		if c.finish != nil && j.err == nil { // no more text comes
			j.release()
		}
		return
	case c.calls != nil || c.finish != nil:
		j.release()
	}
	if c.usage.known { // here: held events have had theirs
		j.usage = c.usage
	}
	switch {
	case j.d.kind == prompt.Messages:
		j.writeBlocks(&c)
	case c.some == 0 && !j.d.asked.usage && !j.d.asked.everyUsage:
	default:
		j.writeChunk(event, data, c.some == 0)
	}
}

// done ends the answer.
func (j *Joined) done() {
	if j.d.kind == prompt.Messages {
		j.endBlocks()
		return
	}
	j.out = append(j.out, "data: [DONE]\n\n"...)
}

// write appends an event as the client gets it.
func (j *Joined) write(event, data []byte) {
	at := bytes.Index(event, data)
	j.out = append(j.out, event[:at]...)
	for _, piece := range prompt.Pieces(data, j.rewrite(nil, data, "", data)) {
		j.out = append(j.out, piece...)
	}
	j.out = append(j.out, event[at+len(data):]...)
}

// writeChunk appends an event of a chat or a completion. last: all that it has is the usage of all.
func (j *Joined) writeChunk(event, data []byte, last bool) {
	j.hides = !j.d.asked.everyUsage && !(last && j.d.asked.usage)
	j.write(event, data)
}

// rewrite appends what makes a value of the second stream the client's. A name means the same at every endpoint.
func (j *Joined) rewrite(edits []prompt.Edit, data []byte, name string, value []byte) []prompt.Edit {
	with := j.of(name, value)
	switch {
	case with != nil:
		lo := cap(data) - cap(value)
		return append(edits, prompt.Edit{Lo: lo, Hi: lo + len(value), Text: with})
	case value[0] == '{' && name != "metadata":
		prompt.Fields(value, func(n, v []byte) bool { edits = j.rewrite(edits, data, string(n), v); return true })
	case value[0] == '[':
		prompt.Elements(value, func(v []byte) bool { edits = j.rewrite(edits, data, name, v); return true })
	}
	return edits
}

// of returns what the client gets in place of a value of that name, nil for the value itself.
func (j *Joined) of(name string, value []byte) []byte {
	d := j.d
	switch name {
	case "id", "item_id":
		switch {
		case bytes.Equal(value, j.item):
			return d.item
		case bytes.Equal(value, j.id):
			return d.id
		}
	case "created", "created_at":
		return d.created
	case "sequence_number":
		return number(d.next)
	case "role":
		if d.kind == prompt.Chat { // the client has it
			return []byte("null")
		}
	case "prompt_token_ids":
		return []byte("null")
	case "text":
		if d.kind == prompt.Responses && value[0] == '"' { // all of it
			return quoted(slices.Concat(d.text, prompt.Inside(value)))
		}
	case "usage":
		if j.hides {
			return []byte("null")
		}
	case "prompt_tokens", "input_tokens":
		input, _ := d.split(j.usage)
		return number(input)
	case "completion_tokens", "output_tokens":
		_, output := d.split(j.usage)
		return number(output)
	}
	for _, b := range d.asked.bounds {
		if b.name == name && given(value) {
			return number(b.tokens)
		}
	}
	return nil
}

// stopAt ends the answer at a stop string that both texts have together. The event that completes it is the last one,
// with no more text than the string.
func (j *Joined) stopAt(event []byte, e ending) {
	if j.d.kind == prompt.Responses {
		j.err = ErrOther
		return
	}
	data, _ := dataOf(event)
	var c chunk
	if c.read(data); c.usage.known {
		j.usage = c.usage
	}
	text := []byte(`""`)
	if j.d.asked.withStop {
		text = marshal(e.rest)
	}
	if j.d.kind == prompt.Messages {
		j.writeBlocks(&chunk{content: text, finish: []byte(`"stop"`), stopped: marshal(e.stop)})
		j.endBlocks()
		j.err = io.EOF
		return
	}
	last := slices.Concat([]byte("data: "), finished(data, text, marshal(e.stop)), []byte("\n\n"))
	j.writeChunk(last, bytes.TrimSpace(last[len(dataField):]), false)
	if j.d.asked.usage && c.usage.known {
		last = slices.Concat([]byte("data: "), set(data, "choices", []byte("[]")), []byte("\n\n"))
		j.writeChunk(last, bytes.TrimSpace(last[len(dataField):]), true)
	}
	j.done()
	j.err = io.EOF
}

// finished returns an event with that text, and the end of its choice by a stop string.
func finished(data, text, stop []byte) []byte {
	var choice []byte
	prompt.Elements(field(data, "choices"), func(c []byte) bool { choice = c; return false })
	if delta := field(choice, "delta"); delta != nil {
		choice = set(choice, "delta", set(delta, "content", text))
	} else {
		choice = set(choice, "text", text)
	}
	choice = set(set(choice, "finish_reason", []byte(`"stop"`)), "stop_reason", stop)
	return set(data, "choices", slices.Concat([]byte{'['}, choice, []byte{']'}))
}
