package vllmsim

import "net/http"

// sse writes the SSE events of one request, one HTTP chunk each. Not safe for concurrent use.
type sse struct {
	w   http.ResponseWriter
	buf []byte // of the event that is being written; reused
	err error
}

// end writes an event of which the closing brace is missing.
func (v *sse) end(b []byte) { v.write(append(b, "}\n\n"...)) }

// write writes and flushes. After an error it does nothing.
func (v *sse) write(b []byte) {
	v.buf = b
	if v.err != nil {
		return
	}
	_, v.err = v.w.Write(b)
	if v.err == nil {
		v.err = http.NewResponseController(v.w).Flush()
	}
}
