package exchange

import (
	"errors"
	"io"
)

// noteServed records that the client has the whole answer, though the worker has not ended it. It is called when all
// that was learnt of the answer has been passed on. Many clients close at [DONE], or as soon as they have a tool call.
func (b *body) noteServed() {
	if b.served || b.reply == nil || b.reply.FinishReason() == "" && !b.reply.Clean() && !b.reply.ReportedError() {
		return
	}
	req := b.r.read.req
	b.served = b.reply.Whole(max(1, req.N) * max(1, len(req.Chains)))
}

// ending returns err as the end of the answer. A client that leaves once it has been served ends the answer well.
func (b *body) ending(err error) error {
	if !b.served || err == io.EOF || !errors.Is(err, ErrClientGone) && causeOf(b.a.ctx) != ErrClientGone {
		return err
	}
	if !b.reply.ReportedError() {
		b.reply.EndHere()
	}
	return io.EOF
}
