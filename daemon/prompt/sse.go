package prompt

import "bytes"

// events cuts an SSE stream into the data of its events, however the stream is split. Where an event lies whole in one piece
// (the usual case: vLLM sends one event per chunk) its data is passed on without copying. Lines end with LF or CRLF; a lone CR,
// which the standard allows too, is not taken for an end: no server of this field sends it.
type events struct {
	line []byte // start of a line whose end has not come
	data []byte // data lines of an event whose end has not come
	some bool   // data is in use, though it may be empty
}

func (e *events) reset() { e.line, e.data, e.some = e.line[:0], e.data[:0], false }

// held is the number of bytes waiting for more.
func (e *events) held() int { return len(e.line) + len(e.data) }

// feed takes the next piece and calls emit for each event that it completes.
func (e *events) feed(piece []byte, emit func(data []byte)) {
	var here []byte // the event's only data line so far, still lying in piece
	for len(piece) > 0 {
		j := bytes.IndexByte(piece, '\n')
		if j < 0 {
			e.line = append(e.line, piece...)
			break
		}
		line, carried := piece[:j], len(e.line) > 0
		piece = piece[j+1:]
		if carried {
			e.line = append(e.line, line...)
			line = e.line
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		switch data, ok := bytes.CutPrefix(line, []byte("data:")); {
		case len(line) == 0:
			if here != nil {
				emit(here)
			} else if e.some {
				emit(e.data)
			}
			here, e.data, e.some = nil, e.data[:0], false
		case !ok: // a comment, or a field that says nothing to us
		default:
			data = bytes.TrimPrefix(data, []byte{' '})
			if here == nil && !e.some && !carried {
				here = data
				break
			}
			e.add(here, here != nil)
			e.add(data, true)
			here = nil
		}
		if carried {
			e.line = e.line[:0]
		}
	}
	e.add(here, here != nil)
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

// end passes on an event that the end of the stream cut short of its empty line. The standard drops it; we only listen, and a
// server that ends with a bare "data: [DONE]" has said all the same that it is done.
func (e *events) end(emit func(data []byte)) {
	e.feed([]byte("\n\n"), emit)
}
