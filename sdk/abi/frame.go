package abi

// HeaderSize and RowSize are the strides of version 1.0, in bytes.
const (
	HeaderSize = 128
	RowSize    = 128
	// OrderSize is the size of one entry of the order area, in bytes.
	OrderSize = 4
)

// Version is major<<16 | minor. A host refuses another major version; a minor version only appends, or fills room that was
// zero. 1.1 has Row.Lately and Row.Pending where 1.0 had eight bytes of zero: a module made for 1.0 does not look there.
const Version = 1<<16 | 1

// Header describes one request. Offsets are in the comments; a test compares them with the compiler's.
type Header struct {
	Version      uint32  // 0: Version
	HeaderBytes  uint32  // 4: HeaderSize of the host
	RowBytes     uint32  // 8: RowSize of the host
	Rows         uint32  // 12: rows that follow, at least 1
	Seq          uint64  // 16: number of this request among its pool's for the same model, from 0, exact over all instances
	Now          int64   // 24: wall clock, Unix nanoseconds, as of the request's arrival
	Random       uint64  // 32: fresh from the host for each pick
	PromptTokens uint32  // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
	PromptBlocks uint32  // 44: blocks of the prompt in the unit of the Row's match counts
	BlockTokens  float32 // 48: tokens in a block, by the current estimate; 0 if there is no prompt
	MaxTokens    uint32  // 52: the request's limit on generated tokens; 0 = not said
	Priority     int32   // 56: the body's priority, lower first; default 0
	Flags        uint32  // 60: HeaderStream, HeaderEvents
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
	_            uint32  // 124: zero
}

// Bits of Header.Flags.
const (
	HeaderStream uint32 = 1 << iota // the client asked for a stream
	HeaderEvents                    // match counts come from the workers' KV events, not from routed history
)

// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its results
// as of the request's arrival.
type Row struct {
	Worker        uint32  // 0: the worker's slot in its pool, stable while the worker is configured
	State         uint32  // 4: RowSlowStart, RowStale
	Predicted     uint32  // 8: leading blocks of the prompt believed held, from routed history
	GPU           uint32  // 12: leading blocks held on the GPU (the best view the host has)
	L1            uint32  // 16: further contiguous blocks in the worker's CPU tier
	L2            uint32  // 20: further contiguous blocks in the shared tier
	Running       uint32  // 24: requests running, as the worker last said
	Waiting       uint32  // 28: requests waiting, as the worker last said
	InFlight      uint32  // 32: requests sent there and not yet ended
	PendingTokens uint32  // 36: prompt tokens sent there without a first byte yet
	KVUsage       float32 // 40: 0..1, as the worker last said
	TTFT          float32 // 44: seconds, running mean; 0 = none seen
	TPOT          float32 // 48: seconds a generated token, running mean; 0 = none seen
	MetricsAge    float32 // 52: seconds since the worker's metrics were read; negative = never
	Weight        float32 // 56: configured, default 1
	Sessions      uint32  // 60: sessions that live there, about; 0 if the request opens none
	Sent          uint64  // 64: requests ever sent there
	Wait          float64 // 72: W: seconds of prefill queued there
	Slow          float64 // 80: m: slowness, seconds per estimated second of prefill
	Load          float64 // 88: rho: prefill seconds sent per second
	FreeGPU       float32 // 96: tokens of free KV on the GPU
	FreeL1        float32 // 100: tokens free in the CPU tier
	ReuseGPU      float32 // 104: R0: chance that the next block pushed out of the GPU is wanted again
	ReuseL1       float32 // 108: R1: the same for the CPU tier
	Key           uint64  // 112: hash of the worker's id, the same over restarts and routers
	Lately        float32 // 120: requests sent there lately, each counted e^(-age/30 s); since 1.1, 0 before
	Pending       float32 // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; since 1.1
}

// Bits of Row.State.
const (
	RowSlowStart uint32 = 1 << iota // back a short while ago: send little
	RowStale                        // metrics are older than three scrape intervals
)

// Values of wp_pick's low half that are no row.
const (
	Decline int32 = -1 // the host's fallback answers
	Reject  int32 = -2 // the client gets 429 with Retry-After
)

// FlagBind asks the host to bind the request's session to the chosen worker.
const FlagBind uint16 = 1

// Pack makes wp_pick's result of a row index (or Decline or Reject), a reason of the strategy's own and flags.
func Pack(row int32, reason, flags uint16) uint64 {
	return uint64(flags)<<48 | uint64(reason)<<32 | uint64(uint32(row))
}

// Unpack undoes Pack.
func Unpack(v uint64) (row int32, reason, flags uint16) {
	return int32(uint32(v)), uint16(v >> 32), uint16(v >> 48)
}

// FrameSize is the size in bytes of the frame area for n rows.
func FrameSize(n int) int { return HeaderSize + n*(RowSize+OrderSize) }
