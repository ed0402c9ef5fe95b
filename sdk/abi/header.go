package abi

import "math"

// Header describes one request. Offsets are in the comments; a test compares them with the compiler's. A module made
// for 1.0 gets the first 128 bytes, one for 1.1 the first 192, one for 1.2 the first 264.
type Header struct {
	Version      uint32  // 0: of the layout: major<<16 + minor
	HeaderBytes  uint32  // 4: size of the header
	RowBytes     uint32  // 8: distance of two rows
	Rows         uint32  // 12: rows that follow, at least 1
	Seq          uint64  // 16: number of the request among its pool's for the same model, from 0, exact over all instances
	Now          int64   // 24: wall clock, Unix nanoseconds, as of the request's arrival
	Random       uint64  // 32: fresh from the host for each pick
	PromptTokens uint32  // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
	PromptBlocks uint32  // 44: blocks of the prompt in the unit of the Row's match counts
	BlockTokens  float32 // 48: tokens in a block, by the current estimate; 0 if there is no prompt
	MaxTokens    uint32  // 52: the request's limit on generated tokens; 0 = not given
	Priority     int32   // 56: the body's priority, lower first; default 0
	Flags        uint32  // 60: HeaderStream and the other Header bits
	Model        uint64  // 64: hash of the model's name; 0 = none named
	Session      uint64  // 72: hash of the session key; 0 = none
	Tenant       uint64  // 80: hash of the tenant (cache salt); 0 = none
	Bound        int32   // 88: row of the worker the session is bound to; -1 = none, or it is not a candidate
	BestRow      int32   // 92: row with the most matched blocks; -1 = no match
	BestMatch    uint32  // 96: blocks matched there
	Lambda       float32 // 100: requests per second and worker: over 30 s, or half of the newest rate if that is more
	C1           float32 // 104: seconds to prefill one token on a worker of slowness 1
	C2           float32 // 108: further seconds a token for each token before it (attention)
	InvBWL1      float32 // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
	InvBWL2      float32 // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
	OrderLen     uint32  // 120: written by the guest: alternatives in the order area; the host clears it
	Endpoint     uint32  // 124: Endpoint* kinds; since 1.1

	// Since 1.1.

	Caller      uint64 // 128: hash of the caller's name (the configured name of the key it used); 0 = none
	Deadline    int64  // 136: Unix nanoseconds after which nobody waits for the answer any more; 0 = none
	Labels      uint32 // 144: names of label bits there are; StrLabel asks for them
	LabelsEpoch uint32 // 148: another number whenever these names may be others

	// Written by the guest for Reject; the host clears them.

	RejectStatus uint32 // 152: HTTP status, 400 to 599; another number counts as 429
	RetryAfter   uint32 // 156: seconds that the client is asked to wait; 0 = the host's own estimate
	RejectText   uint32 // 160: address of the text that the client gets, UTF-8; what is beyond MaxText bytes is cut
	RejectLen    uint32 // 164: its length; 0 = the host's own words

	// Since 1.2.

	Parent         uint64  // 168: hash of the session that began this one, as a subagent's; 0 = none
	Turn           uint32  // 176: number of the request in its session, from 1; 0 = not known
	SinceLast      float32 // 180: seconds since the request before in its session began; 0 = it is the first, or not known
	ExpectedOutput uint32  // 184: tokens that the answer is expected to have, by those before; 0 = not known
	ExpectedTurns  uint32  // 188: requests that the session is expected to send after this one; 0 = none, or not known
	Last           int32   // 192: row of the worker that the session's request before went to; -1 = none, or no candidate
	ParentRow      int32   // 196: row of the worker that the parent's last request went to; -1 = none, or no candidate

	Configured uint32 // 200: workers of the pool that the client's key may use, with a row or not
	Up         uint32 // 204: of them those that answer their health checks

	QueueDepth   uint32  // 208: requests that wait in the pool's queue; 0 also without one
	FlowsWaiting uint32  // 212: flows of them: keys, and agents of a key
	Waited       float32 // 216: seconds that the request has waited there
	HoldMillis   uint32  // 220: written by the guest with Hold: how long it may wait in all; the host clears it

	Prefillers uint32 // 224: last rows, which only compute prompts and cannot be chosen; 0 without WantPair
	PairRow    int32  // 228: written by the guest with WantPair: row that computes the prompt; the host writes -1, none

	// Of a large pool some workers may have no row, see WantCandidates. The means are those of all workers that take
	// requests, with a row or not.
	LeftOut    uint32  // 232: workers that take requests and have no row, about; 0 = none, and all means are 0
	MeanWait   float32 // 236: of Row.Wait
	MeanSlow   float32 // 240: of Row.Slow
	MeanLoad   float32 // 244: of Row.Load
	MeanFlight float32 // 248: requests in flight per unit of weight
	MeanPrompt float32 // 252: prompt tokens of a request in flight; 0 = none is
	KVInFlight float32 // 256: part of the workers' KV caches that prompts in flight have; 1 = not known
	Uneven     uint32  // 260: 1 if a worker has another weight than 1, or is in slow start

	// Since 1.3.

	Gap  float32 // 264: mean seconds between requests of a session of such clients, by those before; 0 = not known
	Next uint32  // 268: 1 + the row whose turn it is by Seq, where some are left out; 0 = it is row Seq modulo rows
}

// HeaderSize is the bytes of a Header.
const HeaderSize = 272

// Need returns the tokens of KV that the request will hold: its prompt and the answer that is expected.
func (h *Header) Need() float64 {
	return float64(int64(h.PromptTokens)) + float64(int64(h.ExpectedOutput))
}

// Edge returns the [Row.Room] below which a row is full for the request: Need if some row has so much, else -Inf, as
// then nothing is gained by passing a row over.
func (h *Header) Edge(rows []Row) float64 {
	need := h.Need()
	for i := range rows {
		if rows[i].Room() >= need {
			return need
		}
	}
	return math.Inf(-1)
}

// Bits of Header.Flags.
const (
	HeaderStream  uint32 = 1 << iota // the client asked for a stream
	HeaderEvents                     // the matches of all rows come from the workers' KV events, not from routed history
	HeaderTokens                     // the prompt's ids are known, and one block of the rows is one token; since 1.1
	HeaderAnswer                     // for the worker that answers; another one may compute the prompt; since 1.2
	HeaderPrefill                    // for the worker that computes the prompt; another one answers; since 1.2
	HeaderFinal                      // the client says that no request of the session follows; since 1.3
)

// Kinds of Header.Endpoint. A request through another door, as SageMaker's, has the kind that its body has.
const (
	EndpointOther       uint32 = iota
	EndpointCompletions        // /v1/completions, /inference/v1/generate
	EndpointChat               // /v1/chat/completions
	EndpointResponses          // /v1/responses
	EndpointMessages           // /v1/messages
	EndpointEmbeddings         // /v1/embeddings, /pooling
	EndpointScore              // /score, /rerank, /classify
	EndpointTokenize           // /tokenize, /detokenize, /v1/messages/count_tokens
)

// MaxText bounds the text of a rejection and the name of a reason, in bytes.
const MaxText = 256
