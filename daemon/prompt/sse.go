package prompt

import "bytes"

// events cuts an SSE stream into the data of its events, however the stream is split. Where an event lies whole in one piece
// (the usual case: vLLM sends one event per chunk) its data is passed on without copying. Lines end with LF or CRLF; a lone CR,
// which the standard allows too, is not taken for an end: no server of this field sends it.
type events struct {
	line  []byte // start of a line whose end has not come
	data  []byte // data lines of an event whose end has not come
	some  bool   // data is in use, though it may be empty
	fault bool   // the event is named error
}

func (e *events) reset() { e.line, e.data, e.some, e.fault = e.line[:0], e.data[:0], false, false }

// held is the number of bytes waiting for more.
func (e *events) held() int { return len(e.line) + len(e.data) }

// fresh reports whether the next byte begins an event.
func (e *events) fresh() bool { return len(e.line) == 0 && !e.some && !e.fault }

// event is one event: its data, whether its name is error, and, if it lay whole in one piece with its data in one line, all
// its lines with the place of the data in them.
type event struct {
	data, lines []byte
	at          int
	fault       bool
}

// next takes from the piece up to the end of the next event. ok: there was one, which holds until the next call; otherwise all
// of the piece was taken.
func (e *events) next(piece []byte) (ev event, rest []byte, ok bool) {
	var here []byte // the event's only data line so far, still lying in piece
	start, whole := piece, e.fresh()
	for len(piece) > 0 {
		j := bytes.IndexByte(piece, '\n')
		if j < 0 {
			if len(e.line) == 0 && !e.some && cap(e.data) > cap(e.line) {
				e.line, e.data = e.data[:0], e.line[:0]
			}
			e.line = append(e.line, piece...)
			break
		}
		line, carried := piece[:j], len(e.line) > 0
		piece = piece[j+1:]
		if carried {
			e.line = append(e.line, line...)
			line, e.line = e.line, e.line[:0]
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		switch data, isData := bytes.CutPrefix(line, []byte("data:")); {
		case len(line) == 0:
			ev.data, ev.fault = here, e.fault
			if ok = here != nil || e.some; here == nil {
				ev.data = e.data
			}
			e.data, e.some, e.fault = e.data[:0], false, false
			if !ok { // an event without data is none
				start, whole = piece, true
				continue
			}
			if whole && here != nil {
				ev.lines = start[:len(start)-len(piece)]
			}
			here = nil
			return ev, piece, true
		case !isData: // a comment, or a field of which only the name error says something to us
			e.fault = e.fault || len(line) < 16 && named(line)
		default:
			data = bytes.TrimPrefix(data, []byte{' '})
			if here == nil && !e.some && !carried {
				here = data
				ev.at = len(start) - len(piece) - (j + 1) + len("data:")
				if start[ev.at] == ' ' {
					ev.at++
				}
				break
			}
			if here == nil && !e.some { // the line's buffer becomes the data's: an event of several reads is held once
				e.data, e.line, e.some = data, e.data[:0], true
				break
			}
			e.add(here, here != nil)
			e.add(data, true)
			here = nil
		}
	}
	e.add(here, here != nil)
	return ev, nil, false
}

// named reports whether a line names the event error.
func named(line []byte) bool {
	name, ok := bytes.CutPrefix(line, []byte("event:"))
	return ok && string(bytes.TrimSpace(name)) == "error"
}

// add keeps a data line; several of one event are joined by a newline.
func (e *events) add(data []byte, really bool) {
	if !really {
		return
	}
	if e.some {
		e.data = append(e.data, '\n')
	}
	e.data, e.some = append(e.data, data...), true
}

// end gives an event that the end of the stream cut short of its empty line. The standard drops it; we only listen, and a
// server that ends with a bare "data: [DONE]" has said all the same that it is done.
func (e *events) end() (event, bool) {
	ev, _, ok := e.next(blank)
	return ev, ok
}

var blank = []byte("\n\n") // ends a line that was begun, and the event
