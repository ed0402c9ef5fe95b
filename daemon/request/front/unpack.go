package front

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

const contentEncoding = "Content-Encoding"

// packing returns the encoding of the request's body, or the error for an encoding that the router does not support.
func packing(in *message.Inbound) (inflate.Coding, message.Fault) {
	if _, ok := in.Lookup(contentEncoding); !ok {
		return inflate.None, message.Fault{}
	}
	c, err := inflate.Parse(in.All(contentEncoding))
	switch err {
	case inflate.ErrUnknown:
		return c, message.FaultPacking
	case inflate.ErrTwice:
		return c, message.FaultGrows
	}
	return c, message.Fault{}
}

// unpack reads a packed body from source as fill does a plain one. From here on the request is one that was never
// packed: the worker gets it so, since vLLM reads no Content-Encoding and would take a packed body for broken JSON.
func (b *bodyReader) unpack(in *message.Inbound, source io.Reader, c inflate.Coding, epoch *Epoch) message.Fault {
	p := &packed{of: b.buffer, Reader: inflate.NewReader(source, c, inflate.Bounds{Most: int64(epoch.MaxBody),
		Memory: &b.buffer.holding})}
	err := b.readStart(p, -1, epoch.BufferBody)
	in.Body = b.buffer.first
	if err == nil {
		in.Tail, in.Left = p, -1
		p.passed = false
	}
	in.Header = slices.DeleteFunc(in.Header, func(f upstream.Field) bool {
		return len(f.Name) == len(contentEncoding) && strings.EqualFold(f.Name, contentEncoding)
	})
	return startFault(err)
}

// packed is a body that is unpacked while it is read. It is the Tail of a request that is not held whole.
type packed struct {
	*inflate.Reader // nil once it has ended
	of              *buffer
	err             error // once it has ended; nil before
	passed          bool  // part of it has been read as a Tail
}

// Passed implements message.Tail.
func (p *packed) Passed() bool { return p.passed }

// Read reads the next bytes of the body as it was before it was packed.
func (p *packed) Read(into []byte) (n int, err error) {
	p.passed = true
	if p.err != nil {
		return 0, p.err
	}
	n, err = p.Reader.Read(into)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, inflate.ErrTooLong):
		err = message.ErrTooLarge
	case errors.Is(err, inflate.ErrGrows):
		err = message.ErrGrows
	case errors.Is(err, inflate.ErrNoRoom):
		err = message.ErrNoDecoder
	case errors.Is(err, inflate.ErrCorrupt):
		err = fmt.Errorf("%w: %w", message.ErrPacked, err)
	}
	p.err = err
	p.end()
	return n, err
}

// end gives the decoders back.
func (p *packed) end() {
	if p.Reader != nil {
		p.Reader.Close()
		p.Reader = nil
		p.of.decoder.Release()
	}
	if p.err == nil {
		p.err = io.ErrUnexpectedEOF
	}
}
