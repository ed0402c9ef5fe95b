package abi

// Records cross outside of a pick. The host writes them one after the other to the address of the frame, as many as
// fit, and calls the export with their number; or it writes them to a buffer that the guest names. Their Go layout is
// the wire layout.

// Sizes of the records in bytes.
const (
	OutcomeSize = 96
	KVEventSize = 48
	HolderSize  = 24
	TierSize    = 32
	TalkSize    = 64
)

// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
type Outcome struct {
	Seq          uint64  // 0: its Header.Seq
	Now          int64   // 8: Unix nanoseconds of what happened
	Model        uint64  // 16: hash of the model's name, as in its Header; 0 = none named
	Session      uint64  // 24: hash of the session key; 0 = none
	Tenant       uint64  // 32: hash of the tenant; 0 = none
	Caller       uint64  // 40: hash of the caller's name; 0 = none
	Key          uint64  // 48: Row.Key of the worker that answered; 0 = none did
	Worker       uint32  // 56: its Row.Worker
	Status       uint32  // 60: HTTP status that the client got; 0 = the client went before it got one
	PromptTokens uint32  // 64: the worker's word if it gave one, else the estimate
	CachedTokens int32   // 68: of these found in the worker's cache, by its own count; -1 = not given
	OutputTokens int32   // 72: generated, by the worker's count; -1 = not given, or not ended yet
	Reason       uint32  // 76: the strategy's own reason code; 0 also = another worker failed, and the host chose this one
	TTFT         float32 // 80: seconds from dispatch to the first byte; negative = there was none
	Seconds      float32 // 84: from arrival until now
	Believed     uint32  // 88: tokens that were believed cached there when it was chosen
	Attempts     uint32  // 92: workers that it was sent to
}

// KVEvent is one block's change in a worker's cache, as wp_on_kv_event learns it.
type KVEvent struct {
	Key    uint64 // 0: Row.Key of the worker
	Hash   uint64 // 8: of the block, the engine's own: it is no hash of prefix_hash; 0 for EventCleared
	Parent uint64 // 16: of the block before it; 0 = none, or not given
	Now    int64  // 24: Unix nanoseconds at which the host got it
	Worker uint32 // 32: Row.Worker
	Kind   uint32 // 36: Event* kinds
	Tier   uint32 // 40: Tier* kinds
	Tokens uint32 // 44: in the block
}

// Kinds of KVEvent.Kind.
const (
	EventStored  uint32 = iota + 1 // the block is in the tier now
	EventRemoved                   // it is no longer
	EventCleared                   // the worker holds nothing any more
)

// Kinds of tiers.
const (
	TierGPU uint32 = iota // the worker's GPU
	TierL1                // the CPU memory of the worker's node
	TierL2                // shared among workers
)

// Talk is a conversation that may move to another worker, as wp_plan learns it: its worker leaves, or another has come.
type Talk struct {
	Value    float64 // 0: of its move; the greater moves first. The guest may write another; 0 and less = it stays
	Session  uint64  // 8: hash of the session key, as in its Header; 0 = none
	Tenant   uint64  // 16: hash of the tenant; 0 = none
	Caller   uint64  // 24: hash of the caller's name; 0 = none
	Model    uint64  // 32: hash of the model's name, as in its Header; 0 = none named
	Tokens   uint32  // 40: of its last prompt, which the new worker computes or loads
	Seconds  float32 // 44: to compute that prompt on a worker of slowness 1
	Returns  float32 // 48: probability of another turn, by the silence and the gaps so far
	Silence  float32 // 52: seconds since its last turn was answered
	Gap      float32 // 56: mean seconds between its turns; 0 = it has had one
	Priority int32   // 60: of its last request, lower first
}

// Holder is what prefix_best and prefix_worker answer: what the host's index believes of one worker.
type Holder struct {
	Key      uint64  // 0: Row.Key
	Matched  uint32  // 8: leading blocks of the prompt that it holds
	Row      int32   // 12: its row; -1 = no candidate for this request
	Blocks   uint32  // 16: blocks that it holds in all
	TailSecs float32 // 20: seconds since the block that it will push out next was last used; negative = not known
}

// Tier is what cache_tiers answers of one tier of a worker.
type Tier struct {
	Kind     uint32  // 0: Tier* kinds
	Flags    uint32  // 4: zero
	Capacity uint64  // 8: tokens that it holds at most; 0 = not known
	Used     uint64  // 16: tokens that it holds
	TokenSec float32 // 24: seconds to bring one token's KV to the GPU; 0 for the GPU itself
	Reuse    float32 // 28: chance that the next block pushed out of it is wanted again; negative = not known
}
