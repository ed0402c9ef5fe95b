package front

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

const contentEncoding = "Content-Encoding"

// packing returns how the request's body is packed. It returns false for a coding that nobody here can undo.
func packing(in *exchange.Inbound) (c inflate.Codings, known bool) {
	if _, ok := in.Lookup(contentEncoding); !ok {
		return c, true
	}
	return inflate.Parse(in.All(contentEncoding))
}

// unpack reads a packed body from source as fill does a plain one. From here on the request is one that was never
// packed: the worker gets it so, since vLLM reads no Content-Encoding and would take a packed body for broken JSON.
func (b *bodyReader) unpack(in *exchange.Inbound, source io.Reader, c inflate.Codings, epoch *Epoch) exchange.Fault {
	p := &packed{Reader: inflate.NewReader(source, c, int64(epoch.MaxBody))}
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
	*inflate.Reader       // nil once it has ended
	err             error // then; nil before
	passed          bool  // part of it has been read as a Tail
}

// Passed implements exchange.Tail.
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
		err = exchange.ErrTooLarge
	case errors.Is(err, inflate.ErrCorrupt):
		err = fmt.Errorf("%w: %w", exchange.ErrPacked, err)
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
	}
	if p.err == nil {
		p.err = io.ErrUnexpectedEOF
	}
}
