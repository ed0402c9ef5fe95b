package prompt

import "bytes"

// maxID bounds an answer's id. vLLM makes it of the client's X-Request-Id.
const maxID = 256

// transcript is what was read of an answer, whatever its kind. The readers of the kinds write it: choicesReader
// (choices.go), itemsReader (outputs.go) and blocksReader (contents.go).
type transcript struct {
	kind    Kind
	stream  bool
	state   state
	answers answers
	usage   counts
	id      []byte
	status  []byte // of a response or a job; "" as long as none was seen
	other   []byte // the last id that differs from the first
	owner   ownership
	next    int   // behind the number of the last event; Responses alone number theirs
	piece   piece // of the event read last
	pinged  bool  // an event came that keeps connections alive
	formed  bool  // a field came that answers of the kind have
	w       writer
}

// piece is an event that held only a piece of text. Its zero value is any other event.
type piece struct {
	text   span // in the event's data; hi is 0 if it was more than text, or less
	choice int  // whose text it is, or nobodys
}

// nobodys is the choice of text that is output but not gathered, such as a thought.
const nobodys = -1

func (t *transcript) reset(kind Kind, stream bool, max int) {
	t.kind = kind
	t.stream = stream
	t.state = state{}
	t.answers.reset(max)
	t.usage = counts{}
	t.id = t.id[:0]
	t.status = t.status[:0]
	t.owner = ownership{}
	t.next = 0
	t.piece = piece{}
	t.pinged = false
	t.formed = false
}

// begin prepares for the data of one event, or a whole body.
func (t *transcript) begin(data []byte) {
	t.state.sawEvent()
	t.piece = piece{}
	t.w.scan.reset(data)
	t.w.scan.loose = true // vectors and the prompt's token ids are the bulk of many answers, and mean nothing here
}

// readUsage scans a usage, one more part of it if some have come.
func (t *transcript) readUsage() bool { return t.usage.scan(&t.w.scan) }

// readID scans the answer's id.
func (t *transcript) readID() bool {
	var v span
	s := &t.w.scan
	ok := s.locate(&v)
	t.sawID(Inside(v.of(s.b)))
	return ok
}

// sawID records an id. The first one is the answer's; each shows whose answer it is.
func (t *transcript) sawID(raw []byte) {
	if len(raw) == 0 || len(raw) > maxID || bytes.Equal(raw, t.id) {
		return
	}
	t.other = unescape(t.other[:0], raw)
	if len(t.id) == 0 {
		t.id = append(t.id, t.other...)
	}
	if t.owner.see(t.other) {
		t.state.fail(failureForeign, 0)
	}
}

// lacksID records that an answer belongs to another request if it has come to its output without an id, though the mark
// expects one: other endpoints have answers without ids.
func (t *transcript) lacksID() bool {
	lacks := t.owner.mark.Strict && t.owner.owner == OwnerUnknown && !t.state.failed()
	if lacks {
		t.state.fail(failureForeign, 0)
	}
	return lacks
}

// readError scans an error that is not null.
func (t *transcript) readError() bool {
	s := &t.w.scan
	if s.at() == 'n' {
		return s.value()
	}
	var code, kind span
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "code":
			return s.locate(&code)
		case "type":
			return s.locate(&kind)
		}
		return s.value()
	})
	t.state.fail(failureReported, statusCode(code.of(s.b), kind.of(s.b)))
	return ok
}

// readDone records [DONE], which ends the kinds that have choices. With no output before it a worker failed: a
// draining one ends so.
func (t *transcript) readDone() {
	if !t.state.hasOutput() && (t.kind.Generates() || t.state.reach == reachNothing) {
		t.state.fail(failureImplied, 0)
	}
	if t.kind != Responses && t.kind != Messages {
		t.state.sawEnd()
	}
}

// isResult has the fields of answers that are not generated, at vLLM and others. Those of one kind have many names.
var isResult = map[string]bool{"data": true, "results": true, "scores": true, "score": true, "embeddings": true,
	"embedding": true, "outputs": true, "tokens": true, "token_ids": true, "count": true, "input_tokens": true}

// heading is the fields of an event's or a body's top level that all kinds have, as ranges of it.
type heading struct{ object, kind, code span }

// readField scans one of these fields.
func (h *heading) readField(t *transcript, key []byte) bool {
	s := &t.w.scan
	t.formed = t.formed || !t.kind.Generates() && isResult[string(key)]
	switch string(key) {
	case "id":
		return t.readID()
	case "object":
		return s.locate(&h.object)
	case "type":
		return s.locate(&h.kind)
	case "code":
		return s.locate(&h.code)
	case "error":
		return t.readError()
	}
	return s.value()
}

// check records an error at the top level.
func (h *heading) check(t *transcript) {
	data := t.w.scan.b
	if string(Inside(h.object.of(data))) == "error" || string(Inside(h.kind.of(data))) == "error" {
		t.state.fail(failureReported, statusCode(h.code.of(data), h.kind.of(data)))
	}
}
