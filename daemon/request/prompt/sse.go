package prompt

import "bytes"

// events cuts an SSE stream into the data of its events, however the stream is split. Where an event lies whole in
// one piece (the usual case: vLLM sends one event per chunk) its data is passed on without copying. Lines end with LF
// or CRLF; a lone CR, which the standard allows too, is not taken for an end: no server of this field sends it.
type events struct {
	line  []byte // start of a line whose end has not come
	data  []byte // data lines of an event whose end has not come
	some  bool   // data is in use, though it may be empty
	fault bool   // the event is named error
	begun bool   // the first line has come
}

// mark may come before a stream's first line. It is not a part of that line.
var mark = []byte("\xEF\xBB\xBF")

func (e *events) reset() {
	e.line = e.line[:0]
	e.data = e.data[:0]
	e.some = false
	e.fault = false
	e.begun = false
}

// held returns the number of bytes waiting for more.
func (e *events) held() int { return len(e.line) + len(e.data) }

// fresh reports whether the next byte begins an event.
func (e *events) fresh() bool { return len(e.line) == 0 && !e.some && !e.fault }

// event is one event: its data, whether its name is error, and, if it lay whole in one piece with its data in one
// line, all its lines with the place of the data in them.
type event struct {
	data, lines []byte
	at          int
	fault       bool
}

// next takes from the piece up to the end of the next event. ok: there was one, which holds until the next call;
// otherwise all of the piece was taken.
func (e *events) next(piece []byte) (ev event, rest []byte, ok bool) {
	var here []byte // the event's only data line so far, still lying in piece
	at, start, whole := 0, piece, e.fresh()
	for len(piece) > 0 {
		lineAt := len(start) - len(piece)
		line, rest, carried, ends := e.cutLine(piece)
		if !ends {
			break
		}
		piece = rest
		if !e.begun {
			e.begun = true
			lineAt += len(line)
			line = bytes.TrimPrefix(line, mark)
			lineAt -= len(line)
		}
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case isData:
			data = bytes.TrimPrefix(data, []byte{' '})
			if here == nil && !e.some && !carried {
				here = data
				at = lineAt + len(line) - len(data)
				break
			}
			e.addLine(here, data, carried)
			here = nil
		case len(line) > 0: // a comment, or a field of which only the name error means something to us
			e.fault = e.fault || len(line) < 16 && named(line)
		case here != nil || e.some:
			ev = e.take(here)
			if whole && here != nil {
				ev.lines = start[:len(start)-len(piece)]
				ev.at = at
			}
			return ev, piece, true
		default: // an event without data is none
			e.fault = false
			start, whole = piece, true
		}
	}
	if here != nil {
		e.add(here)
	}
	return event{}, nil, false
}

// cutLine takes a line off the piece. carried means that the line began in an earlier piece. If its end has not come,
// the line is kept for the next piece.
func (e *events) cutLine(piece []byte) (line, rest []byte, carried, ends bool) {
	j := bytes.IndexByte(piece, '\n')
	if j < 0 {
		if len(e.line) == 0 && !e.some && cap(e.data) > cap(e.line) {
			e.line, e.data = e.data[:0], e.line[:0]
		}
		e.line = append(e.line, piece...)
		return nil, nil, false, false
	}
	line = piece[:j]
	carried = len(e.line) > 0
	if carried {
		e.line = append(e.line, line...)
		line = e.line
		e.line = e.line[:0]
	}
	return bytes.TrimSuffix(line, []byte{'\r'}), piece[j+1:], carried, true
}

// take returns the event that has come to its end: here, or what is kept.
func (e *events) take(here []byte) event {
	ev := event{data: here, fault: e.fault}
	if here == nil {
		ev.data = e.data
	}
	e.data = e.data[:0]
	e.some = false
	e.fault = false
	return ev
}

// addLine keeps a data line, and the only one before it if that still lies in the piece.
func (e *events) addLine(here, data []byte, carried bool) {
	switch {
	case here != nil:
		e.add(here)
	case !e.some && carried: // the line's buffer becomes the data's: an event of several reads is held once
		e.data, e.line = data, e.data[:0]
		e.some = true
		return
	}
	e.add(data)
}

// add keeps a data line; several of one event are joined by a newline.
func (e *events) add(data []byte) {
	if e.some {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
	e.some = true
}

// named reports whether a line names the event error.
func named(line []byte) bool {
	name, ok := bytes.CutPrefix(line, []byte("event:"))
	return ok && string(bytes.TrimSpace(name)) == "error"
}

// flush returns an event that the end of the stream cut short of its empty line. The standard drops it. This reader
// keeps it: a server that ends with a bare "data: [DONE]" has ended the answer all the same.
func (e *events) flush() (event, bool) {
	ev, _, ok := e.next(blank)
	return ev, ok
}

var blank = []byte("\n\n") // ends a line that was begun, and the event
