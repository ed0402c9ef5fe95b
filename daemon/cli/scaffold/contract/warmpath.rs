//! What a strategy and its host agree on: warmpath's ABI 1.3, written from warmpath's sdk/abi: constants, records,
//! imports and exports. Below them is what connects a strategy to it. A later version of warmpath still runs what is built
//! with it.
#![allow(dead_code, unused_unsafe)]
use core::cell::{Cell, RefCell};

// Version is major<<16 + minor of this package. A host refuses another major version. What a minor version may change
// stands in the package's documentation.
pub const VERSION: u32 = 65539;

// OrderSize is the bytes of an entry of the order area.
pub const ORDER_SIZE: u32 = 4;

// Values of wp_pick's low half that are no row.
pub const DECLINE: i32 = -1; // the host's fallback answers
pub const REJECT: i32 = -2; // the client is turned away: see Header.RejectStatus
pub const HOLD: i32 = -3; // the request waits for a better worker: see Header.HoldMillis; since 1.2

// Flags of a decision.
pub const FLAG_BIND: u16 = 1; // bind the request's session to the chosen worker
pub const FLAG_ONLY: u16 = 2; // no worker but the chosen one and those in the order area may get the request; since 1.2

// HeaderSize is the bytes of a Header.
pub const HEADER_SIZE: u32 = 272;

// Bits of Header.Flags.
pub const HEADER_STREAM: u32 = 1; // the client asked for a stream
pub const HEADER_EVENTS: u32 = 2; // the matches of all rows come from the workers' KV events, not from routed history
pub const HEADER_TOKENS: u32 = 4; // the prompt's ids are known, and one block of the rows is one token; since 1.1
pub const HEADER_ANSWER: u32 = 8; // for the worker that answers; another one may compute the prompt; since 1.2
pub const HEADER_PREFILL: u32 = 16; // for the worker that computes the prompt; another one answers; since 1.2
pub const HEADER_FINAL: u32 = 32; // the client says that no request of the session follows; since 1.3

// Kinds of Header.Endpoint. A request through another door, as SageMaker's, has the kind that its body has.
pub const ENDPOINT_OTHER: u32 = 0;
pub const ENDPOINT_COMPLETIONS: u32 = 1; // /v1/completions, /inference/v1/generate
pub const ENDPOINT_CHAT: u32 = 2; // /v1/chat/completions
pub const ENDPOINT_RESPONSES: u32 = 3; // /v1/responses
pub const ENDPOINT_MESSAGES: u32 = 4; // /v1/messages
pub const ENDPOINT_EMBEDDINGS: u32 = 5; // /v1/embeddings, /pooling
pub const ENDPOINT_SCORE: u32 = 6; // /score, /rerank, /classify
pub const ENDPOINT_TOKENIZE: u32 = 7; // /tokenize, /detokenize, /v1/messages/count_tokens

// MaxText bounds the text of a rejection and the name of a reason, in bytes.
pub const MAX_TEXT: u32 = 256;

// RowSize is the bytes of a Row.
pub const ROW_SIZE: u32 = 184;

// Bits of Row.State. Those of adapters count where the request's model is one. From RowLive on since 1.1. A worker
// without a role has neither of the last two: it computes prompts and answers.
pub const ROW_SLOW_START: u32 = 1; // back a short while ago: send little
pub const ROW_STALE: u32 = 2; // metrics are older than three scrape intervals
pub const ROW_LIVE: u32 = 4; // GPU, L1 and L2 come from the worker's own KV events, not from routed history
pub const ROW_ADAPTER: u32 = 8; // the adapter runs there
pub const ROW_ADAPTER_WAITING: u32 = 16; // a request waits there for the adapter to be loaded
pub const ROW_ADAPTERS_FULL: u32 = 32; // as many other adapters run there as it takes
pub const ROW_PREFILL: u32 = 64; // it only computes prompts, whose answers others write; since 1.2
pub const ROW_DECODE: u32 = 128; // it computes no prompts for others; since 1.2
pub const ROW_JOINS: u32 = 256; // it came while others had requests, and has not caught up yet; since 1.2

// The bits of Row.State from RowLoadShift on are the milliseconds that the request's adapter costs there before it
// runs: its load, and its place if none is free. 0 where it runs, and where the model is no adapter. 0 before 1.2.
pub const ROW_LOAD_SHIFT: u32 = 16;
pub const ROW_LOAD_MAX: u32 = 65535;

// Brim is the part of a worker's KV cache that requests may hold. Past it a request waits until others end, or the
// engine preempts one, whose whole context is then computed again. An engine is full before its last token is taken: it
// gives out blocks, and answers grow.
pub const BRIM: f64 = 0.9;

// Sizes of the records in bytes.
pub const OUTCOME_SIZE: u32 = 96;
pub const KV_EVENT_SIZE: u32 = 48;
pub const HOLDER_SIZE: u32 = 24;
pub const TIER_SIZE: u32 = 32;
pub const TALK_SIZE: u32 = 64;

// Kinds of KVEvent.Kind.
pub const EVENT_STORED: u32 = 1; // the block is in the tier now
pub const EVENT_REMOVED: u32 = 2; // it is no longer
pub const EVENT_CLEARED: u32 = 3; // the worker holds nothing any more

// Kinds of tiers.
pub const TIER_GPU: u32 = 0; // the worker's GPU
pub const TIER_L1: u32 = 1; // the CPU memory of the worker's node
pub const TIER_L2: u32 = 2; // shared among workers

// Bits of wp_wants: what costs the host something and is therefore done only for modules that ask.
pub const WANT_COST: u32 = 1; // fill Row.Cost
pub const WANT_TICK: u32 = 2; // call wp_tick
pub const WANT_FIRST_TOKEN: u32 = 4; // call wp_on_first_token
pub const WANT_COMPLETE: u32 = 8; // call wp_on_complete
pub const WANT_KV_EVENTS: u32 = 16; // call wp_on_kv_event
pub const WANT_HELD: u32 = 32; // fill GPU, L1 and L2 by what the workers report: needs the prompt's ids
pub const WANT_CLASSIFY: u32 = 64; // call wp_classify; since 1.2
pub const WANT_PAIR: u32 = 128; // add rows of prefillers, of which PairRow may name one; since 1.2
pub const WANT_FILTER: u32 = 256; // call wp_filter; since 1.2
pub const WANT_CANDIDATES: u32 = 512; // rows of candidates suffice where many workers can take the request; since 1.2
pub const WANT_PLAN: u32 = 1024; // call wp_plan; since 1.3
pub const WANT_SESSIONS: u32 = 2048; // with WantCandidates: all rows for a session that has no worker yet; since 1.3
pub const WANT_ALL: u32 = 4095; // WantAll are the bits that this version knows. A module that sets another is refused.

// WantRows are the bits that change what a frame has.
pub const WANT_ROWS: u32 = 2721;

// WantNotices are the bits of the calls off the request path.
pub const WANT_NOTICES: u32 = 30;

// MaxReasons bounds the reasons that wp_reasons names. A name has at most MaxText bytes.
pub const MAX_REASONS: u32 = 256;

// Kinds of cache.
pub const CACHE_KEEP: i32 = 0; // keep the prompt where it is for amount milliseconds
pub const CACHE_DROP: i32 = 1; // the session of that name, or the request's own if len is 0, has ended
pub const CACHE_PREFETCH: i32 = 2; // have the row's worker hold the prompt amount milliseconds after the answer
pub const CACHE_COPY: i32 = 3; // have the row's worker hold the first amount blocks of the prompt, too

// MaxWishes bounds the calls of cache in one pick.
pub const MAX_WISHES: u32 = 8;

// MaxMany bounds the keys of one kv_get_many.
pub const MAX_MANY: u32 = 4096;

// NoZone is zone_offset's answer to a name of no time zone.
pub const NO_ZONE: i32 = -2147483648;

// MaxChain bounds the hashes that prefix_match_key takes: 2 MiB of text.
pub const MAX_CHAIN: u32 = 16384;

// Errno values, as negative results of imports.
pub const ERR_NOT_FOUND: i32 = -1; // no such key, row or string
pub const ERR_CONFLICT: i32 = -2; // the value is not the one expected
pub const ERR_INVALID: i32 = -3; // a pointer, length or kind is out of range
pub const ERR_FORBIDDEN: i32 = -4; // the configuration of the strategy does not allow it; see allow
pub const ERR_LIMIT: i32 = -5; // the module's quota is used up

// Kinds of str.
pub const STR_SESSION: i32 = 0; // the session key
pub const STR_MODEL: i32 = 1; // the model's name
pub const STR_WORKER: i32 = 2; // the worker id of row index
pub const STR_TENANT: i32 = 3; // the cache salt
pub const STR_CALLER: i32 = 4; // the caller's name; since 1.1
pub const STR_LABEL: i32 = 5; // the label of bit index, as tier=batch; since 1.1
pub const STR_HEADER: i32 = 6; // a header of the request, whose name of index bytes stands at ptr; since 1.1

// Levels of log.
pub const LEVEL_DEBUG: i32 = 0;
pub const LEVEL_INFO: i32 = 1;
pub const LEVEL_WARN: i32 = 2;
pub const LEVEL_ERROR: i32 = 3;

// MaxOptions bounds the encoded options, in bytes.
pub const MAX_OPTIONS: u32 = 65536;

// The shared reasons.
pub const REASON_NONE: u16 = 0;
pub const REASON_PREFIX: u16 = 1; // it holds the longest prefix of the prompt
pub const REASON_LOAD: u16 = 2; // another holds a longer prefix, and using it would cost more than it saves
pub const REASON_COLD: u16 = 3; // no worker holds any of the prompt: the least cost
pub const REASON_PREDICTED: u16 = 4; // there are no KV events: by the history of what was routed
pub const REASON_SESSION: u16 = 5; // the session is bound to it
pub const REASON_HASH: u16 = 6; // a new session, placed by hashing
pub const REASON_SPILL: u16 = 7; // a new session, hashed past a worker that has too much in flight
pub const REASON_LEAST: u16 = 8; // the fewest in flight
pub const REASON_TURN: u16 = 9; // its turn
pub const REASON_COST: u16 = 10; // the least cost, of whatever the strategy reckons with
pub const REASON_OWN: u16 = 256; // ReasonOwn is the first code that is free for a strategy's own reasons.

/// Header describes one request. Offsets are in the comments; a test compares them with the compiler's. A module made
/// for 1.0 gets the first 128 bytes, one for 1.1 the first 192, one for 1.2 the first 264.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Header {
    pub version: u32, // 0: of the layout: major<<16 + minor
    pub header_bytes: u32, // 4: size of the header
    pub row_bytes: u32, // 8: distance of two rows
    pub rows: u32, // 12: rows that follow, at least 1
    pub seq: u64, // 16: number of the request among its pool's for the same model, from 0, exact over all instances
    pub now: i64, // 24: wall clock, Unix nanoseconds, as of the request's arrival
    pub random: u64, // 32: fresh from the host for each pick
    pub prompt_tokens: u32, // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
    pub prompt_blocks: u32, // 44: blocks of the prompt in the unit of the Row's match counts
    pub block_tokens: f32, // 48: tokens in a block, by the current estimate; 0 if there is no prompt
    pub max_tokens: u32, // 52: the request's limit on generated tokens; 0 = not given
    pub priority: i32, // 56: the body's priority, lower first; default 0
    pub flags: u32, // 60: HeaderStream and the other Header bits
    pub model: u64, // 64: hash of the model's name; 0 = none named
    pub session: u64, // 72: hash of the session key; 0 = none
    pub tenant: u64, // 80: hash of the tenant (cache salt); 0 = none
    pub bound: i32, // 88: row of the worker the session is bound to; -1 = none, or it is not a candidate
    pub best_row: i32, // 92: row with the most matched blocks; -1 = no match
    pub best_match: u32, // 96: blocks matched there
    pub lambda: f32, // 100: requests per second and worker: over 30 s, or half of the newest rate if that is more
    pub c1: f32, // 104: seconds to prefill one token on a worker of slowness 1
    pub c2: f32, // 108: further seconds a token for each token before it (attention)
    pub inv_bw_l1: f32, // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
    pub inv_bw_l2: f32, // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
    pub order_len: u32, // 120: written by the guest: alternatives in the order area; the host clears it
    pub endpoint: u32, // 124: Endpoint* kinds; since 1.1
    pub caller: u64, // 128: hash of the caller's name (the configured name of the key it used); 0 = none
    pub deadline: i64, // 136: Unix nanoseconds after which nobody waits for the answer any more; 0 = none
    pub labels: u32, // 144: names of label bits there are; StrLabel asks for them
    pub labels_epoch: u32, // 148: another number whenever these names may be others
    pub reject_status: u32, // 152: HTTP status, 400 to 599; another number counts as 429
    pub retry_after: u32, // 156: seconds that the client is asked to wait; 0 = the host's own estimate
    pub reject_text: u32, // 160: address of the text that the client gets, UTF-8; what is beyond MaxText bytes is cut
    pub reject_len: u32, // 164: its length; 0 = the host's own words
    pub parent: u64, // 168: hash of the session that began this one, as a subagent's; 0 = none
    pub turn: u32, // 176: number of the request in its session, from 1; 0 = not known
    pub since_last: f32, // 180: seconds since the request before in its session began; 0 = it is the first, or not known
    pub expected_output: u32, // 184: tokens that the answer is expected to have, by those before; 0 = not known
    pub expected_turns: u32, // 188: requests that the session is expected to send after this one; 0 = none, or not known
    pub last: i32, // 192: row of the worker that the session's request before went to; -1 = none, or no candidate
    pub parent_row: i32, // 196: row of the worker that the parent's last request went to; -1 = none, or no candidate
    pub configured: u32, // 200: workers of the pool that the client's key may use, with a row or not
    pub up: u32, // 204: of them those that answer their health checks
    pub queue_depth: u32, // 208: requests that wait in the pool's queue; 0 also without one
    pub flows_waiting: u32, // 212: flows of them: keys, and agents of a key
    pub waited: f32, // 216: seconds that the request has waited there
    pub hold_millis: u32, // 220: written by the guest with Hold: how long it may wait in all; the host clears it
    pub prefillers: u32, // 224: last rows, which only compute prompts and cannot be chosen; 0 without WantPair
    pub pair_row: i32, // 228: written by the guest with WantPair: row that computes the prompt; the host writes -1, none
    pub left_out: u32, // 232: workers that take requests and have no row, about; 0 = none, and all means are 0
    pub mean_wait: f32, // 236: of Row.Wait
    pub mean_slow: f32, // 240: of Row.Slow
    pub mean_load: f32, // 244: of Row.Load
    pub mean_flight: f32, // 248: requests in flight per unit of weight
    pub mean_prompt: f32, // 252: prompt tokens of a request in flight; 0 = none is
    pub kv_in_flight: f32, // 256: part of the workers' KV caches that prompts in flight have; 1 = not known
    pub uneven: u32, // 260: 1 if a worker has another weight than 1, or is in slow start
    pub gap: f32, // 264: mean seconds between requests of a session of such clients, by those before; 0 = not known
    pub next: u32, // 268: 1 + the row whose turn it is by Seq, where some are left out; 0 = it is row Seq modulo rows
}
const _: () = assert!(core::mem::size_of::<Header>() == 272);

/// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its
/// results as of the request's arrival. A module made for 1.0 gets the first 128 bytes, one for 1.1 the first 160.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Row {
    pub worker: u32, // 0: the worker's slot in its pool, stable while the worker is configured
    pub state: u32, // 4: RowSlowStart and the other Row bits
    pub predicted: u32, // 8: leading blocks of the prompt believed held, from routed history
    pub gpu: u32, // 12: leading blocks held on the GPU (the best view the host has)
    pub l1: u32, // 16: further contiguous blocks in the worker's CPU tier
    pub l2: u32, // 20: further contiguous blocks in the shared tier
    pub running: u32, // 24: requests running, as the worker last reported
    pub waiting: u32, // 28: requests waiting, as the worker last reported
    pub in_flight: u32, // 32: requests there that have not ended, those of others too as far as they are known
    pub pending_tokens: u32, // 36: prompt tokens sent there without a first byte yet
    pub kv_usage: f32, // 40: 0..1, as the worker last reported
    pub ttft: f32, // 44: seconds, running mean; 0 = none seen
    pub tpot: f32, // 48: seconds a generated token, running mean; 0 = none seen
    pub metrics_age: f32, // 52: seconds since the worker's metrics were read; negative = never
    pub weight: f32, // 56: configured, default 1
    pub sessions: u32, // 60: sessions that live there, about; 0 if the request opens none
    pub sent: u64, // 64: requests ever sent there
    pub wait: f64, // 72: W: seconds of prefill queued there
    pub slow: f64, // 80: m: slowness, seconds per estimated second of prefill
    pub load: f64, // 88: rho: prefill seconds sent per second
    pub free_gpu: f32, // 96: tokens of free KV on the GPU
    pub free_l1: f32, // 100: tokens free in the CPU tier
    pub reuse_gpu: f32, // 104: R0: chance that the next block pushed out of the GPU is wanted again
    pub reuse_l1: f32, // 108: R1: the same for the CPU tier
    pub key: u64, // 112: hash of the worker's id, the same over restarts and routers
    pub lately: f32, // 120: requests sent there lately, each counted e^(-age/30 s); 0 in 1.0
    pub pending: f32, // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; 0 in 1.0
    pub cost: f64, // 128: the host's own score in seconds, the smallest is best, never negative; 0 without WantCost
    pub labels: u64, // 136: a bit for each label of the pool that the worker has; StrLabel names them
    pub flight_tokens: u32, // 144: prompt tokens of the requests in flight there
    pub kv_tokens: u32, // 148: tokens that its GPU's KV cache holds; 0 = not known
    pub price: f32, // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
    pub rank: u32, // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without
    pub held_tokens: u32, // 160: tokens of KV held by requests in flight; what they share counts once if room is short
    pub shared_tokens: u32, // 164: leading tokens of the prompt that are among those already
    pub own: f64, // 168: the strategy's own number for the worker, as own has set it; 0 at first
    pub delay: f64, // 176: seconds that answers take longer for the request; 0 unless prefillers answer too
}
const _: () = assert!(core::mem::size_of::<Row>() == 184);

/// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub seq: u64, // 0: its Header.Seq
    pub now: i64, // 8: Unix nanoseconds of what happened
    pub model: u64, // 16: hash of the model's name, as in its Header; 0 = none named
    pub session: u64, // 24: hash of the session key; 0 = none
    pub tenant: u64, // 32: hash of the tenant; 0 = none
    pub caller: u64, // 40: hash of the caller's name; 0 = none
    pub key: u64, // 48: Row.Key of the worker that answered; 0 = none did
    pub worker: u32, // 56: its Row.Worker
    pub status: u32, // 60: HTTP status that the client got; 0 = the client went before it got one
    pub prompt_tokens: u32, // 64: the worker's word if it gave one, else the estimate
    pub cached_tokens: i32, // 68: of these found in the worker's cache, by its own count; -1 = not given
    pub output_tokens: i32, // 72: generated, by the worker's count; -1 = not given, or not ended yet
    pub reason: u32, // 76: the strategy's own reason code; 0 also = another worker failed, and the host chose this one
    pub ttft: f32, // 80: seconds from dispatch to the first byte; negative = there was none
    pub seconds: f32, // 84: from arrival until now
    pub believed: u32, // 88: tokens that were believed cached there when it was chosen
    pub attempts: u32, // 92: workers that it was sent to
}
const _: () = assert!(core::mem::size_of::<Outcome>() == 96);

/// KVEvent is one block's change in a worker's cache, as wp_on_kv_event learns it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct KVEvent {
    pub key: u64, // 0: Row.Key of the worker
    pub hash: u64, // 8: of the block, the engine's own: it is no hash of prefix_hash; 0 for EventCleared
    pub parent: u64, // 16: of the block before it; 0 = none, or not given
    pub now: i64, // 24: Unix nanoseconds at which the host got it
    pub worker: u32, // 32: Row.Worker
    pub kind: u32, // 36: Event* kinds
    pub tier: u32, // 40: Tier* kinds
    pub tokens: u32, // 44: in the block
}
const _: () = assert!(core::mem::size_of::<KVEvent>() == 48);

/// Talk is a conversation that may move to another worker, as wp_plan learns it: its worker leaves, or another has come.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Talk {
    pub value: f64, // 0: of its move; the greater moves first. The guest may write another; 0 and less = it stays
    pub session: u64, // 8: hash of the session key, as in its Header; 0 = none
    pub tenant: u64, // 16: hash of the tenant; 0 = none
    pub caller: u64, // 24: hash of the caller's name; 0 = none
    pub model: u64, // 32: hash of the model's name, as in its Header; 0 = none named
    pub tokens: u32, // 40: of its last prompt, which the new worker computes or loads
    pub seconds: f32, // 44: to compute that prompt on a worker of slowness 1
    pub returns: f32, // 48: probability of another turn, by the silence and the gaps so far
    pub silence: f32, // 52: seconds since its last turn was answered
    pub gap: f32, // 56: mean seconds between its turns; 0 = it has had one
    pub priority: i32, // 60: of its last request, lower first
}
const _: () = assert!(core::mem::size_of::<Talk>() == 64);

/// Holder is what prefix_best and prefix_worker answer: what the host's index believes of one worker.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Holder {
    pub key: u64, // 0: Row.Key
    pub matched: u32, // 8: leading blocks of the prompt that it holds
    pub row: i32, // 12: its row; -1 = no candidate for this request
    pub blocks: u32, // 16: blocks that it holds in all
    pub tail_secs: f32, // 20: seconds since the block that it will push out next was last used; negative = not known
}
const _: () = assert!(core::mem::size_of::<Holder>() == 24);

/// Tier is what cache_tiers answers of one tier of a worker.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Tier {
    pub kind: u32, // 0: Tier* kinds
    pub flags: u32, // 4: zero
    pub capacity: u64, // 8: tokens that it holds at most; 0 = not known
    pub used: u64, // 16: tokens that it holds
    pub token_sec: f32, // 24: seconds to bring one token's KV to the GPU; 0 for the GPU itself
    pub reuse: f32, // 28: chance that the next block pushed out of it is wanted again; negative = not known
}
const _: () = assert!(core::mem::size_of::<Tier>() == 32);

// The host's functions. (ptr, cap) names a buffer: the answer is the length needed, and the buffer is filled only if cap
// suffices. A negative answer is one of ERR_*. In a native test such a function is one of the test's, as wp_own.
#[cfg_attr(target_arch = "wasm32", link(wasm_import_module = "warmpath_v1"))]
extern "C" {
    /// Str* kinds; the kind decides what index is
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_str")]
    pub fn str(kind: i32, index: i32, ptr: *mut u8, cap: u32) -> i32;
    /// leading blocks of the prompt on that row's worker, all tiers
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_prefix_match")]
    pub fn prefix_match(row: i32) -> i32;
    /// chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_prefix_hash")]
    pub fn prefix_hash(block: i32) -> u64;
    /// the module's own namespace; ErrNotFound
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_kv_get")]
    pub fn kv_get(kptr: *const u8, klen: u32, ptr: *mut u8, cap: u32) -> i32;
    /// olen 0 = must be absent; ErrConflict
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_kv_cas")]
    pub fn kv_cas(kptr: *const u8, klen: u32, optr: *const u8, olen: u32, nptr: *const u8, nlen: u32, ttl_ms: i32) -> i32;
    /// i64 counter; math.MinInt64 on error
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_kv_incr")]
    pub fn kv_incr(kptr: *const u8, klen: u32, delta: i64, ttl_ms: i32) -> i64;
    /// Level*; rate-limited
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_log")]
    pub fn log(level: i32, ptr: *const u8, len: u32);
    /// lines below it are dropped
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_log_level")]
    pub fn log_level() -> i32;
    /// adds f64 value to the module's counter of that name
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_metric")]
    pub fn metric(ptr: *const u8, len: u32, value_bits: u64);
    /// text for the operator about the call that is about to fail
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_error")]
    pub fn error(ptr: *const u8, len: u32);
    /// a Holder: who holds the most of the prompt, of all workers of the pool,
    /// those that are no candidates too
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_prefix_best")]
    pub fn prefix_best(ptr: *mut u8, cap: u32) -> i32;
    /// a Holder: that row's worker, by the host's own history
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_prefix_worker")]
    pub fn prefix_worker(row: i32, ptr: *mut u8, cap: u32) -> i32;
    /// leading blocks of another chain of n hashes, as prefix_hash gave them,
    /// that the row's worker holds; n at most MaxChain
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_prefix_match_key")]
    pub fn prefix_match_key(row: i32, ptr: *const u8, n: u32) -> i32;
    /// a Tier for each tier that the row's worker has, GPU first
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_cache_tiers")]
    pub fn cache_tiers(row: i32, ptr: *mut u8, cap: u32) -> i32;
    /// sets Row.Own of the worker of that Row.Key, for all instances; ErrInvalid
    /// for NaN and infinities, ErrNotFound for no worker that a row has shown
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_own")]
    pub fn own(key: u64, value: f64) -> i32;
    /// that number; 0 also for no such worker
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_own_of")]
    pub fn own_of(key: u64) -> f64;
    /// the values of up to MaxMany keys, each key a u32 length and its bytes;
    /// for each an i32 length and the bytes, or an Errno alone
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_kv_get_many")]
    pub fn kv_get_many(kptr: *const u8, klen: u32, ptr: *mut u8, cap: u32) -> i32;
    /// east of UTC at that time (Unix nanoseconds), in the time zone of that
    /// name, as Europe/Berlin; NoZone if there is none
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_zone_offset")]
    pub fn zone_offset(ptr: *const u8, len: u32, now: i64) -> i32;
    /// asks for something to be done with the KV cache of the request's
    /// conversation once it has been answered: Cache* kinds, which say what the
    /// others are; ErrNotFound for no such row, ErrLimit beyond MaxWishes
    #[cfg_attr(not(target_arch = "wasm32"), link_name = "wp_cache")]
    pub fn cache(what: i32, row: i32, amount: i32, ptr: *const u8, len: u32) -> i32;
}

// What a module exports. wp_frame and wp_pick are below; write those of the others that you need, as
//
//   #[no_mangle]
//   pub extern "C" fn wp_tick(now: i64) { ... }
//
//   wp_frame(max_workers: i32) -> *const u8
//     asked at start, and again when the fleet outgrows max_workers
//   wp_pick() -> i64
//     reads the frame; see Pack
//   wp_configure(len: u32) -> i32
//     options of len bytes stand at the frame's address, see AppendOption; 0 = accepted
//   wp_maint()
//     called between picks every 256 calls: let the guest's runtime collect garbage
//   wp_wants() -> i32
//     asked once, after wp_configure: Want* bits. Without it: all calls exported
//   wp_reasons() -> u32
//     asked once, after wp_configure: names of reason codes stand at the frame's
//     address as pairs, see AppendOption; the key is the code in decimal.
//     At most MaxReasons
//   wp_tick(now: i64)
//     about once a second, Unix nanoseconds
//   wp_on_first_token(n: u32)
//     n Outcomes stand at the frame's address: their first bytes came
//   wp_on_complete(n: u32)
//     n Outcomes: they ended
//   wp_on_kv_event(n: u32)
//     n KVEvents of workers of the pool
//   wp_classify() -> i64
//     reads the header alone of a request that is about to wait in the pool's queue,
//     with a pick's fuel and time; see PackClass. The greater class goes first
//   wp_filter() -> i64
//     reads the frame of all workers that are up, and writes the rows that the
//     request may use to the order area; see Pack: their number stands in place of a
//     row, 0 = none; Decline leaves all; Reject turns the client away
//   wp_plan(n: u32)
//     n Talks stand at the frame's address: conversations whose worker leaves, or to
//     move to one that has come. The guest may write their Values. They are Returns
//     at first, or 0 for one that had better have its next turn before

// Answers.

/// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code, which people see by the name that the
/// export wp_reasons gives it.
pub fn to(worker: i32, reason: u16) -> u64 {
    (reason as u64) << 32 | worker as u32 as u64
}

/// Gives an answer another reason.
pub fn because(answer: u64, reason: u16) -> u64 {
    answer & !(0xffff << 32) | (reason as u64) << 32
}

/// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
pub fn only(answer: u64) -> u64 {
    answer | (FLAG_ONLY as u64) << 48
}

/// Asks the host to keep the request's session with the worker of an answer from now on.
pub fn bind(answer: u64) -> u64 {
    answer | (FLAG_BIND as u64) << 48
}

/// The result of wp_classify: a class, of which the greater goes first, -100 to 100, and the share of the key beside others
/// of the class, .1 to 100; 0 leaves the key's own. [[keys]] priority bounds the class: without it nobody gets above 0.
pub fn class_of(class: i32, share: f32) -> u64 {
    (share.to_bits() as u64) << 32 | class as u32 as u64
}

/// Names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer
/// says only. The native test sees how many there are. There is room for as many as wp_frame was asked for; what is more
/// counts for nothing.
pub fn then(request: &mut Header, worker: u32) {
    #[cfg(target_arch = "wasm32")]
    if !guest::put(request.order_len, worker) {
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _ = worker;
    request.order_len += 1;
}

impl Header {
    /// Turns the request away with a status, 400 to 599, and a text, of which 256 bytes count. The client is asked to come
    /// again after so many seconds; 0 = the host's estimate. Return what it returns.
    pub fn reject(&mut self, status: u32, text: &str, seconds: u32) -> u64 {
        self.reject_status = status;
        self.retry_after = seconds;
        self.reject_text = guest::keep(text.as_bytes()) as usize as u32;
        self.reject_len = text.len().min(MAX_TEXT as usize) as u32;
        to(REJECT, 0)
    }

    /// Turns the request away for want of a worker: 503, and the host's estimate of when to come again.
    pub fn unavailable(&mut self, text: &str) -> u64 {
        self.reject(503, text, 0)
    }

    /// Has the request wait for a better worker, at most so many seconds since it began to wait, and no longer than the
    /// pool's queue lets it. route is asked again when something has changed; waited is how long it has waited. When the
    /// time is over, and at once in a pool without a queue, the host's fallback chooses. Return what it returns.
    pub fn hold(&mut self, seconds: f64) -> u64 {
        self.hold_millis = (seconds * 1000.0) as u32;
        to(HOLD, 0)
    }

    /// Chooses one worker for the answer and one for the prompt; the same twice keeps the prompt from any other. For a
    /// strategy whose wp_wants has WANT_PAIR: it finds the prefillers in the last prefillers rows. Return what it returns.
    pub fn pair(&mut self, decoder: usize, prefiller: usize) -> u64 {
        self.pair_row = prefiller as i32;
        to(decoder as i32, 0)
    }

    /// Keeps the request to the workers that may have it, in the function of filter. Return what it returns.
    pub fn keep(&mut self, workers: &[Row], may: impl Fn(&Header, &Row) -> bool) -> u64 {
        self.order_len = 0;
        for (i, w) in workers.iter().enumerate() {
            if may(self, w) {
                then(self, i as u32);
            }
        }
        to(self.order_len as i32, 0)
    }

    /// The seconds that the worker takes for the prompt when its turn has come: what it computes, attention in, by its own
    /// slowness, and what it brings to the GPU from the tiers below.
    pub fn prefill(&self, w: &Row) -> f64 {
        let (all, block) = (self.prompt_tokens as f64, self.block_tokens as f64);
        let n = (all - w.gpu as f64 * block - w.l1 as f64 * block - w.l2 as f64 * block).max(1.0);
        let mut seconds = w.slow * (self.c1 as f64 * n + self.c2 as f64 * n * (all - n / 2.0));
        if self.inv_bw_l1 != 0.0 {
            seconds += w.l1 as f64 * block * self.inv_bw_l1 as f64 + w.l2 as f64 * block * self.inv_bw_l2 as f64;
        }
        seconds
    }

    /// Predicts the seconds until the request's first token from the worker: what is queued there, and prefill.
    pub fn ttft(&self, w: &Row) -> f64 {
        w.wait + self.prefill(w)
    }

    fn draw(&self) -> u64 {
        thread_local!(static DRAWN: Cell<(u64, u64)> = Cell::new((0, 0)));
        DRAWN.with(|d| {
            let (seed, drawn) = d.get();
            let drawn = if seed == self.random { drawn + 1 } else { 1 };
            d.set((self.random, drawn));
            mix(self.random.wrapping_add(drawn.wrapping_mul(0x9e3779b97f4a7c15)))
        })
    }

    /// One of 0 to n-1 by chance, another at each call; 0 for n below 2.
    pub fn pick(&self, n: usize) -> usize {
        (self.draw() as u128 * n as u128 >> 64) as usize
    }

    /// True with probability p, independently at each call.
    pub fn chance(&self, p: f64) -> bool {
        p > (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The bit of a row's labels for key = value, 0 if no worker of the pool has that label. Ask once, then look at all
    /// workers.
    pub fn labeled(&self, key: &str, value: &str) -> u64 {
        self.names(|names| match names.iter().position(|name| cut(name, key) == Some(value)) {
            Some(bit) => 1 << bit,
            None => 0,
        })
    }

    /// The value of the worker's label of that key, empty without it.
    pub fn label(&self, w: &Row, key: &str) -> String {
        self.names(|names| {
            let mine = names.iter().enumerate().filter(|(bit, _)| w.labels >> bit & 1 != 0);
            mine.filter_map(|(_, name)| cut(name, key)).next().unwrap_or("").to_string()
        })
    }

    /// The names of the label bits. They change only with the configuration, so that a pick asks for them seldom.
    fn names<T>(&self, f: impl FnOnce(&[String]) -> T) -> T {
        thread_local!(static NAMES: RefCell<(Option<u32>, Vec<String>)> = RefCell::new((None, Vec::new())));
        NAMES.with(|n| {
            let mut n = n.borrow_mut();
            if n.0 != Some(self.labels_epoch) || n.1.len() != self.labels.min(64) as usize {
                *n = (Some(self.labels_epoch), (0..self.labels.min(64)).map(|bit| text(STR_LABEL, bit as i32, "")).collect());
            }
            f(&n.1)
        })
    }
}

fn cut<'a>(label: &'a str, key: &str) -> Option<&'a str> {
    label.strip_prefix(key)?.strip_prefix('=')
}

impl Row {
    /// The leading blocks of the prompt that the worker holds, in all tiers.
    pub fn matched(&self) -> u32 {
        self.gpu + self.l1 + self.l2
    }

    /// The seconds that the request's LoRA adapter costs on the worker before it runs; 0 where it runs, and for a request
    /// that names none.
    pub fn adapter_load(&self) -> f64 {
        (self.state >> ROW_LOAD_SHIFT) as f64 * 1e-3
    }

    fn per_weight(&self, x: f64) -> f64 {
        if self.weight > 0.0 { x / self.weight as f64 } else { x }
    }
}

/// Keeps the best four workers of a request: the choice and its alternatives.
///
///   let mut k = Ranking::default();
///   for (i, w) in workers.iter().enumerate() {
///       k.enter(i, w, request.ttft(w));
///   }
///   because(k.choose(request), REASON_COST)
#[derive(Default)]
pub struct Ranking<'a> {
    /// Cost, worker and row, the best first.
    pub best: Vec<(f64, &'a Row, usize)>,
}

impl<'a> Ranking<'a> {
    /// Ranks worker i at a cost; the smallest is best. Enter workers by ascending index. Ties go to the fewest in flight,
    /// then the fewest sent, each per unit of weight, then the index. A cost that is no number is the worst,
    /// and the router's log says so.
    pub fn enter(&mut self, i: usize, w: &'a Row, cost: f64) {
        if self.best.len() == 4 && cost > self.best[3].0 {
            return;
        }
        let p = (if cost.is_nan() { no_number() } else { cost }, w, i);
        let at = self.best.iter().position(|q| before(&p, q)).unwrap_or(self.best.len());
        self.best.insert(at, p);
        self.best.truncate(4);
    }

    /// Names the alternatives and answers with the best worker, best[0]; declines if none was entered.
    pub fn choose(&self, request: &mut Header) -> u64 {
        for other in self.best.iter().skip(1) {
            then(request, other.2 as u32);
        }
        to(self.best.first().map_or(DECLINE, |b| b.2 as i32), 0)
    }
}

fn no_number() -> f64 {
    #[cfg(target_arch = "wasm32")]
    let said = "a cost is no number, as 0/0 gives: its worker is ranked last";
    #[cfg(target_arch = "wasm32")]
    unsafe { log(LEVEL_WARN, said.as_ptr(), said.len() as u32) };
    f64::INFINITY
}

fn before(p: &(f64, &Row, usize), q: &(f64, &Row, usize)) -> bool {
    let busy = |w: &Row| (w.per_weight(w.in_flight as f64), w.per_weight(w.sent as f64));
    p.0 < q.0 || p.0 == q.0 && busy(p.1) < busy(q.1)
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
    x ^ x >> 31
}

/// The number of a text that the request's model, session, tenant and caller are of theirs: FNV-1a, the same over restarts
/// and routers. It is 0 for the empty text alone.
pub fn hash(text: &str) -> u64 {
    let h = text.bytes().fold(0xcbf29ce484222325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100000001b3));
    if text.is_empty() { 0 } else { h.max(1) }
}

/// The rank of a worker for what has the hash, as hash or session, from 0 to 1: the worker of the greatest is its place
/// (rendezvous hashing). All routers agree on it. If a worker leaves, only what it had moves; a worker of twice the weight
/// is the place of twice as many.
pub fn place(hash: u64, w: &Row) -> f64 {
    let u = (mix(hash ^ w.key) >> 11) as f64 / (1u64 << 53) as f64;
    if w.weight > 0.0 && w.weight != 1.0 { u.powf(1.0 / w.weight as f64) } else { u }
}

// Texts of the request, each empty if there is none.

fn text(kind: i32, index: i32, name: &str) -> String {
    let mut b = name.as_bytes().to_vec();
    loop {
        b.resize(b.len().max(256), 0);
        let n = unsafe { self::str(kind, index, b.as_mut_ptr(), b.len() as u32) };
        if n <= b.len() as i32 {
            b.truncate(n.max(0) as usize);
            return String::from_utf8_lossy(&b).into_owned();
        }
        b.resize(n as usize, 0);
    }
}

pub fn session() -> String {
    text(STR_SESSION, 0, "")
}

pub fn model() -> String {
    text(STR_MODEL, 0, "")
}

pub fn tenant() -> String {
    text(STR_TENANT, 0, "")
}

pub fn caller() -> String {
    text(STR_CALLER, 0, "")
}

pub fn worker_id(i: usize) -> String {
    text(STR_WORKER, i as i32, "")
}

/// The request's header of that name, if the strategy's allow list has "headers:" and its name in lower case.
pub fn header(name: &str) -> String {
    text(STR_HEADER, name.len() as i32, name)
}

/// Sets the strategy's own number for the worker of that key, for all instances. 0, or one of ERR_*.
pub fn set_own(key: u64, value: f64) -> i32 {
    unsafe { own(key, value) }
}

/// That number, in the calls beside the picks; in route it is w.own.
pub fn get_own(key: u64) -> f64 {
    unsafe { own_of(key) }
}

/// Adds a value, not below zero, to the strategy's own counter of that name.
pub fn count(name: &str, value: f64) {
    unsafe { metric(name.as_ptr(), name.len() as u32, value.to_bits()) }
}

/// A number or text of the configuration. An instance runs one call at a time, and so must the native tests that set one.
pub struct Setting<T>(Cell<T>);

unsafe impl<T> Sync for Setting<T> {}

impl<T: Copy> Setting<T> {
    pub const fn new(value: T) -> Self {
        Setting(Cell::new(value))
    }
    pub fn get(&self) -> T {
        self.0.get()
    }
    pub fn set(&self, value: T) {
        self.0.set(value)
    }
}

/// Reads the options of the configuration, in the export wp_configure(len), which returns what it returns:
///
///   static EACH: Setting<f64> = Setting::new(0.01);
///
///   warmpath::configure(len, |o| EACH.set(o.number("each", 0.01)))
///
/// An option that is unknown or has a wrong value is refused.
pub fn configure(len: u32, read: impl FnOnce(&mut Options)) -> i32 {
    let mut o = unsafe { options(len) };
    read(&mut o);
    let mut left = 0;
    let unknown = Options { left: o.left, known: 0, wrong: None }.find(|_| {
        left += 1;
        left > 64 || o.known >> (left - 1) & 1 == 0
    });
    match o.wrong.or(unknown.map(|(key, _)| key)) {
        Some(key) => refuse(key),
        None => 0,
    }
}

/// The pairs of key and value of the options, one after the other, as they reach wp_configure(len).
///
/// # Safety
/// They are valid until wp_configure returns, and len is what the host gave.
pub unsafe fn options(len: u32) -> Options<'static> {
    Options { left: core::slice::from_raw_parts(guest::at(0), (len as usize).min(guest::SIZE)), known: 0, wrong: None }
}

pub struct Options<'a> {
    pub left: &'a [u8],
    known: u64, // a bit for each option, in their order, that was asked for
    wrong: Option<&'a str>,
}

impl<'a> Options<'a> {
    /// The option as a number.
    pub fn number(&mut self, key: &str, absent: f64) -> f64 {
        match self.get(key) {
            None => absent,
            Some((_, value)) if value.parse::<f64>().map_or(false, f64::is_finite) => value.parse().unwrap(),
            Some((key, _)) => {
                self.wrong = Some(key);
                absent
            }
        }
    }

    /// The option's text, which stays.
    pub fn text(&mut self, key: &str, absent: &'static str) -> &'static str {
        match self.get(key) {
            None => absent,
            Some((_, value)) => Box::leak(value.to_string().into_boxed_str()),
        }
    }

    fn get(&mut self, key: &str) -> Option<(&'a str, &'a str)> {
        let (i, found) = Options { left: self.left, known: 0, wrong: None }.take(64).enumerate().find(|(_, o)| o.0 == key)?;
        self.known |= 1 << i;
        Some(found)
    }

    fn cut(&mut self) -> Option<&'a str> {
        let n = u32::from_le_bytes(self.left.get(..4)?.try_into().ok()?) as usize;
        let text = self.left.get(4..)?.get(..n)?;
        self.left = &self.left[4 + n..];
        core::str::from_utf8(text).ok()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (&'a str, &'a str);
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.cut()?, self.cut()?))
    }
}

/// Tells the operator that an option is unknown or has a wrong value. Return what it returns.
pub fn refuse(key: &str) -> i32 {
    let text = ["unknown option, or wrong value: ", key].concat();
    unsafe { error(text.as_ptr(), text.len() as u32) };
    ERR_INVALID
}

/// Writes names of reasons where the host reads them, in the export wp_reasons, which returns what it returns:
/// reasons(&[("10", "least cost")]).
pub fn reasons(names: &[(&str, &str)]) -> i32 {
    let mut len = 0;
    for text in names.iter().flat_map(|(code, name)| [*code, *name]) {
        assert!(len + 4 + text.len() <= guest::SIZE);
        unsafe {
            (guest::at(len) as *mut [u8; 4]).write((text.len() as u32).to_le_bytes());
            core::ptr::copy_nonoverlapping(text.as_ptr(), guest::at(len + 4), text.len());
        }
        len += 4 + text.len();
    }
    len as i32
}

/// Does what reasons does with names for the codes from REASON_OWN on: named(&["learnt", "by chance"]).
pub fn named(names: &[&str]) -> i32 {
    let codes: Vec<String> = (0..names.len()).map(|i| (REASON_OWN as usize + i).to_string()).collect();
    reasons(&codes.iter().map(String::as_str).zip(names.iter().copied()).collect::<Vec<_>>())
}

/// Has a function say which workers the request may use, in the export wp_filter, which returns what it returns. The function
/// returns what keep makes of the workers, or to(DECLINE, 0) if it has no opinion, or what reject returns:
///
///   warmpath::filter(|r, workers| {
///       let own = r.labeled("for", &caller());
///       r.keep(workers, |_, w| w.labels & own != 0)
///   })
pub fn filter(f: impl FnOnce(&mut Header, &[Row]) -> u64) -> u64 {
    guest::ask(f, HOLD) // which is no answer of a filter: to decline would let all stay
}

/// The n records of wp_on_first_token(n) or wp_on_complete(n).
pub fn outcomes(n: u32) -> impl Iterator<Item = Outcome> {
    records(n)
}

/// The n records of wp_on_kv_event(n).
pub fn events(n: u32) -> impl Iterator<Item = KVEvent> {
    records(n)
}

/// The n records of wp_plan(n). Write the value of each.
pub fn talks(n: u32) -> &'static mut [Talk] {
    let n = (n as usize).min(guest::SIZE / core::mem::size_of::<Talk>());
    unsafe { core::slice::from_raw_parts_mut(guest::at(0) as *mut Talk, n) }
}

fn records<T: Copy>(n: u32) -> impl Iterator<Item = T> {
    let size = core::mem::size_of::<T>();
    (0..(n as usize).min(guest::SIZE / size)).map(move |i| unsafe { (guest::at(i * size) as *const T).read() })
}

/// The request of wp_classify, which has no workers.
pub fn request() -> Header {
    unsafe { (guest::at(0) as *const Header).read() }
}

pub mod guest {
    use super::{Header, Row};
    use core::mem::size_of;
    use core::ptr::addr_of_mut;

    const MAX_WORKERS: usize = 4096;
    pub const SIZE: usize = size_of::<Header>() + MAX_WORKERS * (size_of::<Row>() + 4);

    // Header, rows and order area. The host calls one export of an instance at a time.
    static mut AREA: [u64; SIZE / 8 + 1] = [0; SIZE / 8 + 1];
    static mut ROWS: u32 = 0;

    /// The frame, from a byte on.
    pub fn at(byte: usize) -> *mut u8 {
        unsafe { (addr_of_mut!(AREA) as *mut u8).add(byte) }
    }

    #[cfg(target_arch = "wasm32")]
    #[no_mangle]
    pub extern "C" fn warmpath_abi_1_3() {}

    #[cfg(target_arch = "wasm32")]
    #[no_mangle]
    pub extern "C" fn wp_frame(max_workers: u32) -> u32 {
        if max_workers as usize > MAX_WORKERS {
            core::arch::wasm32::unreachable();
        }
        unsafe { ROWS = max_workers };
        at(0) as u32
    }

    /// Copies the text of a rejection, which the host reads after the call.
    pub fn keep(text: &[u8]) -> *const u8 {
        static mut TEXT: [u8; super::MAX_TEXT as usize] = [0; super::MAX_TEXT as usize];
        unsafe {
            let to = addr_of_mut!(TEXT) as *mut u8;
            core::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len().min(super::MAX_TEXT as usize));
            to
        }
    }

    /// Writes an entry of the order area, which stands behind the rows that wp_frame was asked for.
    #[cfg(target_arch = "wasm32")]
    pub fn put(entry: u32, worker: u32) -> bool {
        unsafe {
            if entry >= ROWS {
                return false;
            }
            let order = size_of::<Header>() + ROWS as usize * size_of::<Row>();
            (at(order) as *mut u32).add(entry as usize).write(worker);
        }
        true
    }

    #[cfg(target_arch = "wasm32")]
    #[no_mangle]
    pub extern "C" fn wp_pick() -> u64 {
        ask(crate::route, super::DECLINE)
    }

    /// Gives f the frame. unread is the answer for one that cannot be read.
    pub fn ask(f: impl FnOnce(&mut Header, &[Row]) -> u64, unread: i32) -> u64 {
        unsafe {
            let header = &mut *(at(0) as *mut Header);
            if header.rows == 0 || header.rows > ROWS {
                return super::to(unread, 0);
            }
            let rows = at(size_of::<Header>()) as *const Row;
            f(header, core::slice::from_raw_parts(rows, header.rows as usize))
        }
    }
}
