package engine

import "time"

// Finish is how a sequence ended.
type Finish int32

// The ways in which a sequence ends.
const (
	Unfinished   Finish = iota
	FinishStop          // its reply came to an end of its own
	FinishLength        // it reached MaxTokens
	FinishAbort         // it was cancelled, or the engine went away under it: vLLM hides that failure in a 200
)

// finishNames holds vLLM's finish_reason of each Finish.
var finishNames = [...]string{"", "stop", "length", "abort"}

// String returns vLLM's finish_reason.
func (f Finish) String() string { return finishNames[f] }

// fetch is what a sequence gets from the tiers instead of computing it.
type fetch struct {
	blocks  int    // behind the cached ones
	cpu     int    // tokens of them that the CPU tier has
	shared  int    // tokens that the shared tier has
	remote  int    // tokens that another engine has
	stale   int    // of those of the tiers, tokens that other weights have computed
	weights uint32 // these, if any
	ready   time.Duration
	asked   bool // there are tiers, or another engine
}

type seqState uint8

const (
	waiting seqState = iota
	loading          // its blocks come from a tier
	running
	ended
)

// Sequence is one prompt and its reply. A request has one for each prompt and choice. NewSequence makes it, the
// caller sets the exported fields, and from Submit on it belongs to the engine.
type Sequence struct {
	// Owner is the caller's: the engine never looks at it, and events lead back by it.
	Owner any
	// Reply is what the sequence generates. NewSequence makes it of pseudo-words without an end.
	Reply Reply
	// MaxTokens bounds the reply; at least 1.
	MaxTokens int
	// Recompute makes the engine read nothing of the prompt from the cache. The prompt is still entered.
	Recompute bool
	// Report makes the engine report the cached prefix as stored once more, as kv_cache_report_mode "full" does.
	Report bool
	// Remote is how many leading tokens of the prompt another engine has computed for this one, which loads the full
	// blocks of them that it lacks. Default 0, none. A preempted sequence computes them itself, as in vLLM.
	Remote int
	// Keep makes the engine hold the blocks of a sequence that has reached MaxTokens until Release.
	Keep bool
	// Adapter is the LoRA adapter that the sequence runs with, "" for none. NewSequence's salt keeps its blocks apart.
	Adapter string
	// Session is the label that the sequence's changes carry.
	Session string
	// Aside says that no client waits for the sequence: see Behind.
	Aside bool

	prompt    int      // tokens
	ids       []uint32 // of the prompt
	salt      string
	blockSize int      // tokens of a KV block
	root      uint64   // parent of hashes[0]
	hashes    []uint64 // of the full blocks of prompt and reply so far
	open      []uint32 // tokens behind the last full block

	state       seqState
	finish      Finish
	blocks      []int32
	done        int       // tokens whose KV is computed
	entered     int       // leading blocks that the pool can find
	output      int       // tokens generated
	cached      int       // prompt tokens found cached at admission, those of the tiers too
	stale       int       // of these, those that other weights have computed
	weights     [2]uint32 // that have computed the first token of the reply, and the last so far
	load        fetch
	saved       int // leading chunks that were offered to the tiers
	preemptions int
	behind      time.Duration
	placed      bool // its adapter's place counts it

	shown   int           // tokens of the reply that events have reported
	shownAt time.Duration // when the last of those events was made
	times   Times
}

// Times are the instants of a sequence's life, zero for what has not come yet.
type Times struct {
	Arrived  time.Duration // Submit
	Admitted time.Duration // the first step that worked on it began
	First    time.Duration // first token
	Last     time.Duration // latest token
}

// NewSequence makes a sequence of prompt tokens for an engine whose blocks have blockSize tokens. The reply depends on
// the prompt, the salt and the seed. It hashes the prompt, which may be done while an engine runs. The sequence keeps
// ids, which must not change from then on.
func NewSequence(ids []uint32, salt string, seed uint64, blockSize int) Sequence {
	q := Sequence{prompt: len(ids), ids: ids, salt: salt, blockSize: blockSize, root: rootHash(salt)}
	q.hashes, q.open = hashBlocks(q.root, ids, blockSize)
	h := q.lastHash()
	for _, id := range q.open {
		h = Mix(h, uint64(id))
	}
	q.Reply = NewReply(Mix(h, seed))
	return q
}

// PromptTokens returns the length of the prompt.
func (q *Sequence) PromptTokens() int { return q.prompt }

// OutputTokens returns the number of tokens generated so far.
func (q *Sequence) OutputTokens() int { return q.output }

// CachedTokens returns the number of prompt tokens that were found in the cache, or in a tier, at admission.
func (q *Sequence) CachedTokens() int { return q.cached }

// StaleTokens returns how many of the CachedTokens were computed by other weights than those that the engine had at
// admission.
func (q *Sequence) StaleTokens() int { return q.stale }

// Weights returns the weights that computed the first token of the reply, and the last so far.
func (q *Sequence) Weights() (first, last uint32) { return q.weights[0], q.weights[1] }

// Loaded returns how many of the CachedTokens were loaded from the CPU tier, and how many from the shared one.
func (q *Sequence) Loaded() (cpu, shared int) { return q.load.cpu, q.load.shared }

// Hashes returns the chained hashes of the full blocks of the prompt and of the reply so far. They are those of Change,
// and not to be changed.
func (q *Sequence) Hashes() []uint64 { return q.hashes }

// Preemptions returns how often the sequence was sent back to wait.
func (q *Sequence) Preemptions() int { return q.preemptions }

// Finish returns how the sequence ended.
func (q *Sequence) Finish() Finish { return q.finish }

// Times returns the instants of the sequence's life so far.
func (q *Sequence) Times() Times { return q.times }

// length returns the tokens of prompt and reply so far.
func (q *Sequence) length() int { return q.prompt + q.output }

// lookups returns the number of leading blocks that a lookup may use: the last token is always computed.
func (q *Sequence) lookups() int {
	if q.Recompute {
		return 0
	}
	return min(len(q.hashes), (q.length()-1)/q.blockSize)
}

// blocksFor returns the number of KV blocks that so many of the sequence's tokens take.
func (q *Sequence) blocksFor(tokens int) int { return (tokens + q.blockSize - 1) / q.blockSize }

// decodes reports whether a step of n tokens feeds back the last generated token and nothing more.
func (q *Sequence) decodes(n int) bool { return n == 1 && q.output > 0 && q.done == q.length()-1 }

// left returns the number of tokens still to come.
func (q *Sequence) left() int {
	end := q.MaxTokens
	if q.Reply.stop >= 0 {
		end = min(end, q.Reply.stop+1)
	}
	return end - q.output
}

// ending returns how a sequence ends that has nothing left.
func (q *Sequence) ending() Finish {
	if q.Reply.stop >= 0 && q.output > q.Reply.stop {
		return FinishStop
	}
	return FinishLength
}

// generate adds the next token of the reply.
func (q *Sequence) generate() {
	q.open = append(q.open, q.Reply.Token(q.output))
	q.output++
	if len(q.open) < q.blockSize {
		return
	}
	q.hashes = append(q.hashes, blockHash(q.lastHash(), q.open))
	q.open = q.open[:0]
}

// lastHash returns the hash of the last full block, or the root where there is none.
func (q *Sequence) lastHash() uint64 {
	if n := len(q.hashes); n > 0 {
		return q.hashes[n-1]
	}
	return q.root
}

// token returns token i of prompt and reply.
func (q *Sequence) token(i int) uint32 {
	if i < q.prompt {
		return q.ids[i]
	}
	return q.Reply.Token(i - q.prompt)
}

// Behind returns by how much later the first token has come as steps had shares of sequences that are Aside.
func (q *Sequence) Behind() time.Duration { return q.behind }
