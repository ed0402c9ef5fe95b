package sdk

import "github.com/warmpath/warmpath/sdk/abi"

// Alternatives is how many further choices the built-in strategies name: failover rarely gets to the second, and the host
// appends the rest in the order of the rows.
const Alternatives = 3

// Request is the request to be routed. Its fields are the header's: PromptTokens, Session (a hash; the text is
// [Session]), Seq, Random and so on.
type Request struct {
	*abi.Header
	order []uint32
}

// NewRequest views h as a request. Alternatives go to order, as many as it has room for.
func NewRequest(h *abi.Header, order []uint32) *Request {
	return &Request{Header: h, order: order}
}

// FromEvents tells whether match counts come from the workers' KV events; otherwise they are the routed history's.
func (r *Request) FromEvents() bool { return r.Flags&abi.HeaderEvents != 0 }

// SlowStart tells whether a worker is back since a short while: send it little.
func SlowStart(w *Worker) bool { return w.State&abi.RowSlowStart != 0 }

// Then names worker i as the next choice, should those before it refuse the request. Name neither the chosen worker nor
// one twice: the host skips both.
func (r *Request) Then(i int) {
	if n := int(r.OrderLen); n < len(r.order) {
		r.order[n] = uint32(i)
		r.OrderLen++
	}
}

// Order returns the choices that [Request.Then] has named so far, best first.
func (r *Request) Order() []uint32 {
	return r.order[:min(int(r.OrderLen), len(r.order))]
}
