package vllmsim

import (
	"sync/atomic"
	"time"
)

// finish says how a sequence ended; its text is vLLM's finish_reason.
type finish int32

const (
	unfinished finish = iota
	finishStop
	finishLength
	finishAbort // the engine went away under it: a failure hidden in a 200, as in vLLM
)

var finishNames = [...]string{"", "stop", "length", "abort"}

type seqState uint8

const (
	waiting seqState = iota
	running
	gone
)

// sequence is one prompt and its reply in the engine. A request has one for each prompt and choice.
type sequence struct {
	prompt int // tokens
	block  int // tokens of a KV block
	max    int // tokens of the reply at most
	reply  reply
	notify chan struct{} // of capacity 1, shared by the sequences of a request

	recompute bool // nothing is read from the cache

	// What the request's goroutine may read at any time. It lags behind output so that one event carries several tokens.
	produced atomic.Int32
	ended    atomic.Int32 // a finish; set after produced
	hit      atomic.Int32 // prompt tokens found cached at admission

	// The rest is guarded by engine.mu.
	state   seqState
	hashes  []uint64 // of the full blocks of prompt and reply so far
	root    uint64   // parent of hashes[0]
	open    []uint32 // tokens behind the last full block
	blocks  []int32
	done    int // tokens whose KV is computed
	entered int // leading blocks that the pool can find
	output  int // tokens generated
	preempt int // times preempted

	arrived, admitted, first, last time.Duration // simulated
	flushed                        time.Time
}

// newSequence makes a sequence of prompt tokens; the reply depends on the prompt, the salt and the seed.
func newSequence(ids []uint32, salt string, seed uint64, block int) *sequence {
	q := &sequence{prompt: len(ids), block: block, root: chainRoot(salt)}
	q.hashes, q.open = chain(q.root, ids, block)
	h := q.root
	if n := len(q.hashes); n > 0 {
		h = q.hashes[n-1]
	}
	for _, id := range q.open {
		h = mix(h, uint64(id))
	}
	q.reply = reply{seed: mix(h, seed), stop: -1}
	return q
}

// tokens is the length of prompt and reply so far.
func (q *sequence) tokens() int { return q.prompt + q.output }

// cacheable is the number of leading blocks that a lookup may use: the last token is always computed anew.
func (q *sequence) cacheable() int {
	if q.recompute {
		return 0
	}
	return min(len(q.hashes), (q.tokens()-1)/q.block)
}

// decoding says that a step of n tokens feeds back the last generated token and nothing more.
func (q *sequence) decoding(n int) bool { return n == 1 && q.output > 0 && q.done == q.tokens()-1 }

// left is the number of tokens still to come; the sequence ends by itself.
func (q *sequence) left() int {
	end := q.max
	if q.reply.stop >= 0 {
		end = min(end, q.reply.stop+1)
	}
	return end - q.output
}

// sample generates the next token.
func (q *sequence) sample() {
	q.open = append(q.open, q.reply.token(q.output))
	q.output++
	if len(q.open) < q.block {
		return
	}
	parent := q.root
	if n := len(q.hashes); n > 0 {
		parent = q.hashes[n-1]
	}
	q.hashes = append(q.hashes, chainNext(parent, q.open))
	q.open = q.open[:0]
}

// publish shows the request's goroutine what has been generated.
func (q *sequence) publish(end finish) {
	q.produced.Store(int32(q.output))
	if end != unfinished {
		q.ended.Store(int32(end))
	}
	select {
	case q.notify <- struct{}{}:
	default:
	}
}
