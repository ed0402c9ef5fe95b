package abi

// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its
// results as of the request's arrival. A module made for 1.0 gets the first 128 bytes, one for 1.1 the first 160.
type Row struct {
	Worker        uint32  // 0: the worker's slot in its pool, stable while the worker is configured
	State         uint32  // 4: RowSlowStart and the other Row bits
	Predicted     uint32  // 8: leading blocks of the prompt believed held, from routed history
	GPU           uint32  // 12: leading blocks held on the GPU (the best view the host has)
	L1            uint32  // 16: further contiguous blocks in the worker's CPU tier
	L2            uint32  // 20: further contiguous blocks in the shared tier
	Running       uint32  // 24: requests running, as the worker last reported
	Waiting       uint32  // 28: requests waiting, as the worker last reported
	InFlight      uint32  // 32: requests there that have not ended, those of others too as far as they are known
	PendingTokens uint32  // 36: prompt tokens sent there without a first byte yet
	KVUsage       float32 // 40: 0..1, as the worker last reported
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
	Lately        float32 // 120: requests sent there lately, each counted e^(-age/30 s); 0 in 1.0
	Pending       float32 // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; 0 in 1.0

	// Since 1.1.

	Cost         float64 // 128: the host's own score in seconds, the smallest is best, never negative; 0 without WantCost
	Labels       uint64  // 136: a bit for each label of the pool that the worker has; StrLabel names them
	FlightTokens uint32  // 144: prompt tokens of the requests in flight there
	KVTokens     uint32  // 148: tokens that its GPU's KV cache holds; 0 = not known
	Price        float32 // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
	Rank         uint32  // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without

	// Since 1.2.

	HeldTokens   uint32 // 160: tokens of KV held by requests in flight; what they share counts once if room is short
	SharedTokens uint32 // 164: leading tokens of the prompt that are among those already

	Own float64 // 168: the strategy's own number for the worker, as own has set it; 0 at first

	// Delay is the seconds that answers take longer for the request. Where an answer is placed: its own, more than on a
	// worker that does nothing else. Where a prompt is: those being written there, in all. 0 in a pool without prefillers
	// that answer too.
	Delay float64 // 176: seconds that answers take longer for the request; 0 unless prefillers answer too
}

// RowSize is the bytes of a Row.
const RowSize = 184

// Bits of Row.State. Those of adapters count where the request's model is one. From RowLive on since 1.1. A worker
// without a role has neither of the last two: it computes prompts and answers.
const (
	RowSlowStart      uint32 = 1 << iota // back a short while ago: send little
	RowStale                             // metrics are older than three scrape intervals
	RowLive                              // GPU, L1 and L2 come from the worker's own KV events, not from routed history
	RowAdapter                           // the adapter runs there
	RowAdapterWaiting                    // a request waits there for the adapter to be loaded
	RowAdaptersFull                      // as many other adapters run there as it takes
	RowPrefill                           // it only computes prompts, whose answers others write; since 1.2
	RowDecode                            // it computes no prompts for others; since 1.2
	RowJoins                             // it came while others had requests, and has not caught up yet; since 1.2
)

// The bits of Row.State from RowLoadShift on are the milliseconds that the request's adapter costs there before it
// runs: its load, and its place if none is free. 0 where it runs, and where the model is no adapter. 0 before 1.2.
const (
	RowLoadShift = 16
	RowLoadMax   = 1<<(32-RowLoadShift) - 1
)

// SlowStart reports whether the worker came back a short while ago: send it little.
func (r *Row) SlowStart() bool { return r.State&RowSlowStart != 0 }

// Stale reports whether the worker's last report (Running, Waiting, KVUsage) is older than three scrape intervals.
func (r *Row) Stale() bool { return r.State&RowStale != 0 }

// Live reports whether the matches come from the worker's own KV events.
func (r *Row) Live() bool { return r.State&RowLive != 0 }

// Adapter reports whether the LoRA adapter that the request names as its model runs there.
func (r *Row) Adapter() bool { return r.State&RowAdapter != 0 }

// Joins reports whether the worker came, or came back, while others had requests, and has not caught up with them yet.
func (r *Row) Joins() bool { return r.State&RowJoins != 0 }

// AdapterLoad returns the seconds that the request's LoRA adapter costs on the worker before it runs: its load, and its
// place if none is free. It is 0 if the adapter runs there, and for a request that names none.
func (r *Row) AdapterLoad() float64 { return float64(r.State>>RowLoadShift) * 1e-3 }

// Prefills reports whether the worker may compute a prompt whose answer another one writes.
func (r *Row) Prefills() bool { return r.State&RowDecode == 0 }

// Decodes reports whether the worker may answer a client.
func (r *Row) Decodes() bool { return r.State&RowPrefill == 0 }

// Brim is the part of a worker's KV cache that requests may hold. Past it a request waits until others end, or the
// engine preempts one, whose whole context is then computed again. An engine is full before its last token is taken: it
// gives out blocks, and answers grow.
const Brim = .9

// Room returns the tokens of KV that are left on the worker for the request, up to Brim: below zero if it is past that.
// A cache of unknown size counts as one of 2^32 tokens. There is no branch in it, as a loop over the rows calls it.
func (r *Row) Room() float64 {
	return float64(Brim*(float64(int64(r.KVTokens-1))+1)) - float64(int64(r.HeldTokens)) + float64(int64(r.SharedTokens))
}

// Matched returns the leading blocks of the prompt that are held there, in all tiers.
func (r *Row) Matched() uint32 { return r.GPU + r.L1 + r.L2 }
