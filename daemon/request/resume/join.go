package resume

import (
	"bytes"
	"cmp"
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
	item   []byte // of responses: the second id of the message
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
	if !c.read(data) || c.fails || c.strange || c.index != 0 {
		j.err = ErrOther
		return
	}
	if c.usage.known {
		j.usage = c.usage
	}
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
	switch {
	case j.d.kind == prompt.Messages:
		j.writeBlocks(&c)
	case c.some == 0 && !j.d.asked.usage && !j.d.asked.everyUsage:
	default:
		j.writeChunk(event, data, &c)
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

// edit replaces a value of the data, if it is there.
func edit(edits []prompt.Edit, data, value, with []byte) []prompt.Edit {
	if value == nil || with == nil {
		return edits
	}
	lo := cap(data) - cap(value)
	return append(edits, prompt.Edit{Lo: lo, Hi: lo + len(value), Text: with})
}

// write appends an event with edits of its data.
func (j *Joined) write(event, data []byte, edits []prompt.Edit) {
	at := bytes.Index(event, data)
	j.out = append(append(j.out, event[:at]...), edited(data, edits)...)
	j.out = append(j.out, event[at+len(data):]...)
}

func edited(data []byte, edits []prompt.Edit) []byte {
	slices.SortFunc(edits, func(a, b prompt.Edit) int { return cmp.Compare(a.Lo, b.Lo) })
	return bytes.Join(prompt.Pieces(data, edits), nil)
}

// writeChunk appends an event of a chat or a completion as the client gets it.
func (j *Joined) writeChunk(event, data []byte, c *chunk) { j.write(event, data, j.edits(data, c)) }

func (j *Joined) edits(data []byte, c *chunk) []prompt.Edit {
	edits := edit(edit(nil, data, c.id, j.d.id), data, c.created, j.d.created)
	if c.role != nil { // of an engine that repeats it in each event
		edits = edit(edits, data, c.role, []byte("null"))
	}
	if c.usage.known {
		edits = edit(edits, data, c.usageAt, j.counts(c))
	}
	return edit(edits, data, c.promptIDs, []byte("null"))
}

// counts returns the usage of an event as the client gets it: null where it has not asked for one.
func (j *Joined) counts(c *chunk) []byte {
	if asks := &j.d.asked; !asks.everyUsage && (c.some > 0 || !asks.usage) {
		return []byte("null")
	}
	input, output := j.d.split(c.usage)
	text := c.usageAt
	for _, set := range []struct {
		name string
		n    int
	}{{"prompt_tokens", input}, {"completion_tokens", output}, {"total_tokens", input + output}} {
		text = bytes.Join(prompt.Pieces(text, prompt.SetField(text, set.name, number(set.n))), nil)
	}
	return text
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
	c.read(data)
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
	edits := edit(edit(j.edits(data, &c), data, c.content, text), data, c.text, text)
	last := finished(edited(data, edits), marshal(e.stop))
	j.write(slices.Concat([]byte("data: "), last, []byte("\n\n")), last, nil)
	if j.d.asked.usage && c.usage.known {
		c.some = 0
		j.write(event, data, edit(j.edits(data, &c), data, c.choices, []byte("[]")))
	}
	j.done()
	j.err = io.EOF
}

// finished returns an event with the end of its choice, by a stop string.
func finished(data, stop []byte) []byte {
	choices := field(data, "choices")
	var choice []byte
	prompt.Elements(choices, func(c []byte) bool { choice = c; return false })
	choice = set(set(choice, "finish_reason", []byte(`"stop"`)), "stop_reason", stop)
	return set(data, "choices", slices.Concat([]byte{'['}, choice, []byte{']'}))
}
