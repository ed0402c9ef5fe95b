package attempt

import "sync"

// page keeps what was read of a stream before its first output, until the client reads it. The zero value is empty.
type page struct {
	buffer *[]byte // pooled; nil before the first piece and after the last
	held   []byte  // of buffer: what the client has not read
}

// pages are the buffers: 4 KiB hold several events.
var pages = sync.Pool{New: func() any { p := make([]byte, 4096); return &p }}

// room returns where the next piece may be read to.
func (p *page) room() []byte {
	if p.buffer == nil {
		p.buffer = pages.Get().(*[]byte)
	}
	return (*p.buffer)[len(p.held):cap(*p.buffer)]
}

// grow adds the first n bytes of room to what is held, and returns them.
func (p *page) grow(n int) []byte {
	before := len(p.held)
	p.held = (*p.buffer)[:before+n]
	return p.held[before:]
}

// full reports whether no piece can be added.
func (p *page) full() bool { return p.buffer != nil && len(p.held) == cap(*p.buffer) }

// read moves what is held to the client's buffer, as much as fits.
func (p *page) read(to []byte) int {
	n := copy(to, p.held)
	p.held = p.held[n:]
	if len(p.held) == 0 {
		p.release()
	}
	return n
}

// release gives the buffer back, and drops what is held.
func (p *page) release() {
	if p.buffer != nil {
		pages.Put(p.buffer)
		p.buffer, p.held = nil, nil
	}
}
