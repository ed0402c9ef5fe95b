//! What a strategy and its host agree on: warmpath's ABI 1.2, written from warmpath's sdk/abi: constants, records,
//! imports and exports. Below them is what connects a strategy to it. A later version of warmpath still runs what is built
//! with it.
#![allow(dead_code, unused_unsafe)]

// Version is major<<16 + minor of this package. A host refuses another major version. What a minor version may change
// stands in the package's documentation.
pub const VERSION: u32 = 65538;

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
pub const HEADER_SIZE: u32 = 232;

// Bits of Header.Flags.
pub const HEADER_STREAM: u32 = 1; // the client asked for a stream
pub const HEADER_EVENTS: u32 = 2; // the matches of all rows come from the workers' KV events, not from routed history
pub const HEADER_TOKENS: u32 = 4; // the prompt's ids are known, and one block of the rows is one token; since 1.1
pub const HEADER_ANSWER: u32 = 8; // for the worker that answers; another one may compute the prompt; since 1.2
pub const HEADER_PREFILL: u32 = 16; // for the worker that computes the prompt; another one answers; since 1.2

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
pub const KVEVENT_SIZE: u32 = 48;
pub const HOLDER_SIZE: u32 = 24;
pub const TIER_SIZE: u32 = 32;

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
pub const WANT_KVEVENTS: u32 = 16; // call wp_on_kv_event
pub const WANT_HELD: u32 = 32; // fill GPU, L1 and L2 by what the workers report: needs the prompt's ids
pub const WANT_CLASSIFY: u32 = 64; // call wp_classify; since 1.2
pub const WANT_PAIR: u32 = 128; // add rows of prefillers, of which PairRow may name one; since 1.2
pub const WANT_ALL: u32 = 255; // WantAll are the bits that this version knows. A module that sets another is refused.

// WantNotices are the bits of the calls off the request path.
pub const WANT_NOTICES: u32 = 30;

// MaxReasons bounds the reasons that wp_reasons names. A name has at most MaxText bytes.
pub const MAX_REASONS: u32 = 256;

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
/// for 1.0 gets the first 128 bytes, one for 1.1 the first 192.
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
    pub inv_bwl1: f32, // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
    pub inv_bwl2: f32, // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
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
}
const _: () = assert!(core::mem::size_of::<Header>() == 232);

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
    pub kvusage: f32, // 40: 0..1, as the worker last reported
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
    pub kvtokens: u32, // 148: tokens that its GPU's KV cache holds; 0 = not known
    pub price: f32, // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
    pub rank: u32, // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without
    pub held_tokens: u32, // 160: tokens of KV held by requests in flight; what they share counts once if room is short
    pub shared_tokens: u32, // 164: leading tokens of the prompt that are among those already
    pub own: f64, // 168: the strategy's own number for the worker, as own has set it; 0 at first
    pub delay: f64, // 176:
}
const _: () = assert!(core::mem::size_of::<Row>() == 184);

/// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub seq: u64, // 0: its Header.Seq
    pub now: i64, // 8: Unix nanoseconds of what happened
    pub model: u64, // 16: as in its Header
    pub session: u64, // 24:
    pub tenant: u64, // 32:
    pub caller: u64, // 40:
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

/// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code, which people see by the name that the
/// export wp_reasons gives it.
pub fn to(worker: i32, reason: u16) -> u64 {
    (reason as u64) << 32 | worker as u32 as u64
}

/// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
pub fn only(answer: u64) -> u64 {
    answer | (FLAG_ONLY as u64) << 48
}

/// Names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer
/// says only. The native test sees how many there are.
pub fn then(request: &mut Header, worker: u32) {
    #[cfg(target_arch = "wasm32")]
    guest::put(request.order_len, worker);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = worker;
    request.order_len += 1;
}

/// The pairs of key and value of the options of the configuration, as they reach wp_configure(len):
///
///   for (key, value) in unsafe { options(len) } {
///       match (key, value.parse()) {
///           ("each", Ok(n)) => unsafe { EACH = n },
///           _ => return refuse(key),
///       }
///   }
///   0
///
/// # Safety
/// They are valid until wp_configure returns, and len is what the host gave.
#[cfg(target_arch = "wasm32")]
pub unsafe fn options(len: u32) -> Options<'static> {
    Options { left: core::slice::from_raw_parts(guest::at(0), len as usize) }
}

pub struct Options<'a> {
    pub left: &'a [u8],
}

impl<'a> Options<'a> {
    fn text(&mut self) -> Option<&'a str> {
        let n = u32::from_le_bytes(self.left.get(..4)?.try_into().ok()?) as usize;
        let text = self.left.get(4..)?.get(..n)?;
        self.left = &self.left[4 + n..];
        core::str::from_utf8(text).ok()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (&'a str, &'a str);
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.text()?, self.text()?))
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
#[cfg(target_arch = "wasm32")]
pub fn reasons(names: &[(&str, &str)]) -> i32 {
    let mut len = 0;
    for text in names.iter().flat_map(|(code, name)| [*code, *name]) {
        unsafe {
            (guest::at(len) as *mut [u8; 4]).write((text.len() as u32).to_le_bytes());
            core::ptr::copy_nonoverlapping(text.as_ptr(), guest::at(len + 4), text.len());
        }
        len += 4 + text.len();
    }
    len as i32
}

#[cfg(target_arch = "wasm32")]
mod guest {
    use super::{to, Header, Row, DECLINE};
    use core::ptr::addr_of_mut;

    const MAX_WORKERS: usize = 4096;

    #[repr(C)]
    struct Area {
        header: Header,
        rows: [Row; MAX_WORKERS],
        order: [u32; MAX_WORKERS],
    }

    // The host calls one export of an instance at a time.
    static mut AREA: core::mem::MaybeUninit<Area> = core::mem::MaybeUninit::uninit();
    static mut ROWS: u32 = 0;

    #[no_mangle]
    pub extern "C" fn warmpath_abi_1_2() {}

    #[no_mangle]
    pub extern "C" fn wp_frame(max_workers: u32) -> u32 {
        if max_workers as usize > MAX_WORKERS {
            core::arch::wasm32::unreachable();
        }
        unsafe { ROWS = max_workers };
        at(0) as u32
    }

    /// The frame, from a byte on.
    pub fn at(byte: usize) -> *mut u8 {
        unsafe { (addr_of_mut!(AREA) as *mut u8).add(byte) }
    }

    /// Writes an entry of the order area, which stands behind the rows that wp_frame was asked for.
    pub fn put(entry: u32, worker: u32) {
        unsafe {
            if entry < ROWS {
                let order = core::mem::size_of::<Header>() + ROWS as usize * core::mem::size_of::<Row>();
                (at(order) as *mut u32).add(entry as usize).write(worker);
            }
        }
    }

    #[no_mangle]
    pub extern "C" fn wp_pick() -> u64 {
        unsafe {
            let header = &mut *(at(0) as *mut Header);
            if header.rows == 0 || header.rows > ROWS {
                return to(DECLINE, 0);
            }
            let rows = at(core::mem::size_of::<Header>()) as *const Row;
            crate::route(header, core::slice::from_raw_parts(rows, header.rows as usize))
        }
    }
}
