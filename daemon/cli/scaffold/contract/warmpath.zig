//! What a strategy and its host agree on: warmpath's ABI 1.3, written from warmpath's sdk/abi: constants, records,
//! imports and exports. Below them is what connects a strategy to it. A later version of warmpath still runs what is built
//! with it.
const std = @import("std");
const builtin = @import("builtin");

comptime {
    if (builtin.zig_version.order(.{ .major = 0, .minor = 14, .patch = 0 }) == .lt)
        @compileError("warmpath.zig needs Zig 0.14 or later");
}

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
pub const Header = extern struct {
    version: u32 = 0, // 0: of the layout: major<<16 + minor
    header_bytes: u32 = 0, // 4: size of the header
    row_bytes: u32 = 0, // 8: distance of two rows
    rows: u32 = 0, // 12: rows that follow, at least 1
    seq: u64 = 0, // 16: number of the request among its pool's for the same model, from 0, exact over all instances
    now: i64 = 0, // 24: wall clock, Unix nanoseconds, as of the request's arrival
    random: u64 = 0, // 32: fresh from the host for each pick
    prompt_tokens: u32 = 0, // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
    prompt_blocks: u32 = 0, // 44: blocks of the prompt in the unit of the Row's match counts
    block_tokens: f32 = 0, // 48: tokens in a block, by the current estimate; 0 if there is no prompt
    max_tokens: u32 = 0, // 52: the request's limit on generated tokens; 0 = not given
    priority: i32 = 0, // 56: the body's priority, lower first; default 0
    flags: u32 = 0, // 60: HeaderStream and the other Header bits
    model: u64 = 0, // 64: hash of the model's name; 0 = none named
    session: u64 = 0, // 72: hash of the session key; 0 = none
    tenant: u64 = 0, // 80: hash of the tenant (cache salt); 0 = none
    bound: i32 = 0, // 88: row of the worker the session is bound to; -1 = none, or it is not a candidate
    best_row: i32 = 0, // 92: row with the most matched blocks; -1 = no match
    best_match: u32 = 0, // 96: blocks matched there
    lambda: f32 = 0, // 100: requests per second and worker: over 30 s, or half of the newest rate if that is more
    c1: f32 = 0, // 104: seconds to prefill one token on a worker of slowness 1
    c2: f32 = 0, // 108: further seconds a token for each token before it (attention)
    inv_bw_l1: f32 = 0, // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
    inv_bw_l2: f32 = 0, // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
    order_len: u32 = 0, // 120: written by the guest: alternatives in the order area; the host clears it
    endpoint: u32 = 0, // 124: Endpoint* kinds; since 1.1
    caller: u64 = 0, // 128: hash of the caller's name (the configured name of the key it used); 0 = none
    deadline: i64 = 0, // 136: Unix nanoseconds after which nobody waits for the answer any more; 0 = none
    labels: u32 = 0, // 144: names of label bits there are; StrLabel asks for them
    labels_epoch: u32 = 0, // 148: another number whenever these names may be others
    reject_status: u32 = 0, // 152: HTTP status, 400 to 599; another number counts as 429
    retry_after: u32 = 0, // 156: seconds that the client is asked to wait; 0 = the host's own estimate
    reject_text: u32 = 0, // 160: address of the text that the client gets, UTF-8; what is beyond MaxText bytes is cut
    reject_len: u32 = 0, // 164: its length; 0 = the host's own words
    parent: u64 = 0, // 168: hash of the session that began this one, as a subagent's; 0 = none
    turn: u32 = 0, // 176: number of the request in its session, from 1; 0 = not known
    since_last: f32 = 0, // 180: seconds since the request before in its session began; 0 = it is the first, or not known
    expected_output: u32 = 0, // 184: tokens that the answer is expected to have, by those before; 0 = not known
    expected_turns: u32 = 0, // 188: requests that the session is expected to send after this one; 0 = none, or not known
    last: i32 = 0, // 192: row of the worker that the session's request before went to; -1 = none, or no candidate
    parent_row: i32 = 0, // 196: row of the worker that the parent's last request went to; -1 = none, or no candidate
    configured: u32 = 0, // 200: workers of the pool that the client's key may use, with a row or not
    up: u32 = 0, // 204: of them those that answer their health checks
    queue_depth: u32 = 0, // 208: requests that wait in the pool's queue; 0 also without one
    flows_waiting: u32 = 0, // 212: flows of them: keys, and agents of a key
    waited: f32 = 0, // 216: seconds that the request has waited there
    hold_millis: u32 = 0, // 220: written by the guest with Hold: how long it may wait in all; the host clears it
    prefillers: u32 = 0, // 224: last rows, which only compute prompts and cannot be chosen; 0 without WantPair
    pair_row: i32 = 0, // 228: written by the guest with WantPair: row that computes the prompt; the host writes -1, none
    left_out: u32 = 0, // 232: workers that take requests and have no row, about; 0 = none, and all means are 0
    mean_wait: f32 = 0, // 236: of Row.Wait
    mean_slow: f32 = 0, // 240: of Row.Slow
    mean_load: f32 = 0, // 244: of Row.Load
    mean_flight: f32 = 0, // 248: requests in flight per unit of weight
    mean_prompt: f32 = 0, // 252: prompt tokens of a request in flight; 0 = none is
    kv_in_flight: f32 = 0, // 256: part of the workers' KV caches that prompts in flight have; 1 = not known
    uneven: u32 = 0, // 260: 1 if a worker has another weight than 1, or is in slow start
    gap: f32 = 0, // 264: mean seconds between requests of a session of such clients, by those before; 0 = not known
    next: u32 = 0, // 268: 1 + the row whose turn it is by Seq, where some are left out; 0 = it is row Seq modulo rows

    comptime {
        std.debug.assert(@sizeOf(@This()) == 272);
    }

    /// Turns the request away with a status, 400 to 599, and a text, of which 256 bytes count. The client is asked to come
    /// again after so many seconds; 0 = the host's estimate. Return what it returns.
    pub fn reject(r: *Header, status: u32, what: []const u8, seconds: u32) u64 {
        r.reject_status = status;
        r.retry_after = seconds;
        const n = @min(what.len, turned_away.len);
        @memcpy(turned_away[0..n], what[0..n]);
        r.reject_text = @truncate(@intFromPtr(&turned_away));
        r.reject_len = @intCast(n);
        return to(REJECT, 0);
    }

    /// Turns the request away for want of a worker: 503, and the host's estimate of when to come again.
    pub fn unavailable(r: *Header, what: []const u8) u64 {
        return r.reject(503, what, 0);
    }

    /// Has the request wait for a better worker, at most so many seconds since it began to wait, and no longer than the
    /// pool's queue lets it. The strategy is asked again when something has changed; waited is how long it has waited. When
    /// the time is over, and at once in a pool without a queue, the host's fallback chooses. Return what it returns.
    pub fn hold(r: *Header, seconds: f64) u64 {
        r.hold_millis = if (seconds > 0) @intFromFloat(@min(seconds * 1000, 4294967295)) else 0;
        return to(HOLD, 0);
    }

    /// Chooses one worker for the answer and one for the prompt; the same twice keeps the prompt from any other. For a
    /// strategy whose wp_wants has WANT_PAIR: it finds the prefillers in the last prefillers rows. Return what it returns.
    pub fn pair(r: *Header, decoder: usize, prefiller: usize) u64 {
        r.pair_row = @intCast(prefiller);
        return to(@intCast(decoder), 0);
    }

    /// The seconds that the worker takes for the prompt when its turn has come: what it computes, attention in, by its own
    /// slowness, and what it brings to the GPU from the tiers below.
    pub fn prefill(r: *const Header, w: *const Row) f64 {
        const all = float(r.prompt_tokens);
        const block: f64 = r.block_tokens;
        const n = @max(1, all - float(w.gpu) * block - float(w.l1) * block - float(w.l2) * block);
        const seconds = w.slow * (@as(f64, r.c1) * n + @as(f64, r.c2) * n * (all - n / 2));
        if (r.inv_bw_l1 == 0) return seconds;
        return seconds + (float(w.l1) * block * r.inv_bw_l1 + float(w.l2) * block * r.inv_bw_l2);
    }

    /// Predicts the seconds until the request's first token from the worker: what is queued there, and prefill.
    pub fn ttft(r: *const Header, w: *const Row) f64 {
        return w.wait + r.prefill(w);
    }

    fn draw(r: *const Header) u64 {
        if (seed != r.random) drawn = 0;
        seed = r.random;
        drawn += 1;
        return mix(seed +% drawn *% 0x9e3779b97f4a7c15);
    }

    /// One of 0 to n-1 by chance, another at each call; 0 for n below 2.
    pub fn pick(r: *const Header, n: usize) usize {
        return @intCast(@as(u128, r.draw()) * n >> 64);
    }

    /// True with probability p, independently at each call.
    pub fn chance(r: *const Header, p: f64) bool {
        return float(r.draw() >> 11) / (1 << 53) < p;
    }

    /// The bit of a row's labels for key = value, 0 if no worker of the pool has that label. Ask once, then look at all
    /// workers.
    pub fn labeled(r: *const Header, key: []const u8, value: []const u8) u64 {
        for (label_list(r), 0..) |name, bit| {
            const v = cut(name, key) orelse continue;
            if (std.mem.eql(u8, v, value)) return @as(u64, 1) << @intCast(bit);
        }
        return 0;
    }

    /// The value of the worker's label of that key, empty without it.
    pub fn label(r: *const Header, w: *const Row, key: []const u8) []const u8 {
        for (label_list(r), 0..) |name, bit| {
            if (w.labels >> @intCast(bit) & 1 != 0) return cut(name, key) orelse continue;
        }
        return "";
    }
};

/// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its
/// results as of the request's arrival. A module made for 1.0 gets the first 128 bytes, one for 1.1 the first 160.
pub const Row = extern struct {
    worker: u32 = 0, // 0: the worker's slot in its pool, stable while the worker is configured
    state: u32 = 0, // 4: RowSlowStart and the other Row bits
    predicted: u32 = 0, // 8: leading blocks of the prompt believed held, from routed history
    gpu: u32 = 0, // 12: leading blocks held on the GPU (the best view the host has)
    l1: u32 = 0, // 16: further contiguous blocks in the worker's CPU tier
    l2: u32 = 0, // 20: further contiguous blocks in the shared tier
    running: u32 = 0, // 24: requests running, as the worker last reported
    waiting: u32 = 0, // 28: requests waiting, as the worker last reported
    in_flight: u32 = 0, // 32: requests there that have not ended, those of others too as far as they are known
    pending_tokens: u32 = 0, // 36: prompt tokens sent there without a first byte yet
    kv_usage: f32 = 0, // 40: 0..1, as the worker last reported
    ttft: f32 = 0, // 44: seconds, running mean; 0 = none seen
    tpot: f32 = 0, // 48: seconds a generated token, running mean; 0 = none seen
    metrics_age: f32 = 0, // 52: seconds since the worker's metrics were read; negative = never
    weight: f32 = 0, // 56: configured, default 1
    sessions: u32 = 0, // 60: sessions that live there, about; 0 if the request opens none
    sent: u64 = 0, // 64: requests ever sent there
    wait: f64 = 0, // 72: W: seconds of prefill queued there
    slow: f64 = 0, // 80: m: slowness, seconds per estimated second of prefill
    load: f64 = 0, // 88: rho: prefill seconds sent per second
    free_gpu: f32 = 0, // 96: tokens of free KV on the GPU
    free_l1: f32 = 0, // 100: tokens free in the CPU tier
    reuse_gpu: f32 = 0, // 104: R0: chance that the next block pushed out of the GPU is wanted again
    reuse_l1: f32 = 0, // 108: R1: the same for the CPU tier
    key: u64 = 0, // 112: hash of the worker's id, the same over restarts and routers
    lately: f32 = 0, // 120: requests sent there lately, each counted e^(-age/30 s); 0 in 1.0
    pending: f32 = 0, // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; 0 in 1.0
    cost: f64 = 0, // 128: the host's own score in seconds, the smallest is best, never negative; 0 without WantCost
    labels: u64 = 0, // 136: a bit for each label of the pool that the worker has; StrLabel names them
    flight_tokens: u32 = 0, // 144: prompt tokens of the requests in flight there
    kv_tokens: u32 = 0, // 148: tokens that its GPU's KV cache holds; 0 = not known
    price: f32 = 0, // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
    rank: u32 = 0, // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without
    held_tokens: u32 = 0, // 160: tokens of KV held by requests in flight; what they share counts once if room is short
    shared_tokens: u32 = 0, // 164: leading tokens of the prompt that are among those already
    own: f64 = 0, // 168: the strategy's own number for the worker, as own has set it; 0 at first
    delay: f64 = 0, // 176: seconds that answers take longer for the request; 0 unless prefillers answer too

    comptime {
        std.debug.assert(@sizeOf(@This()) == 184);
    }

    /// The leading blocks of the prompt that the worker holds, in all tiers.
    pub fn matched(w: *const Row) u32 {
        return w.gpu + w.l1 + w.l2;
    }

    /// The seconds that the request's LoRA adapter costs on the worker before it runs; 0 where it runs, and for a request
    /// that names none.
    pub fn adapter_load(w: *const Row) f64 {
        return float(w.state >> ROW_LOAD_SHIFT) * 1e-3;
    }

    fn per_weight(w: *const Row, n: f64) f64 {
        return if (w.weight > 0) n / w.weight else n;
    }
};

/// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
pub const Outcome = extern struct {
    seq: u64 = 0, // 0: its Header.Seq
    now: i64 = 0, // 8: Unix nanoseconds of what happened
    model: u64 = 0, // 16: hash of the model's name, as in its Header; 0 = none named
    session: u64 = 0, // 24: hash of the session key; 0 = none
    tenant: u64 = 0, // 32: hash of the tenant; 0 = none
    caller: u64 = 0, // 40: hash of the caller's name; 0 = none
    key: u64 = 0, // 48: Row.Key of the worker that answered; 0 = none did
    worker: u32 = 0, // 56: its Row.Worker
    status: u32 = 0, // 60: HTTP status that the client got; 0 = the client went before it got one
    prompt_tokens: u32 = 0, // 64: the worker's word if it gave one, else the estimate
    cached_tokens: i32 = 0, // 68: of these found in the worker's cache, by its own count; -1 = not given
    output_tokens: i32 = 0, // 72: generated, by the worker's count; -1 = not given, or not ended yet
    reason: u32 = 0, // 76: the strategy's own reason code; 0 also = another worker failed, and the host chose this one
    ttft: f32 = 0, // 80: seconds from dispatch to the first byte; negative = there was none
    seconds: f32 = 0, // 84: from arrival until now
    believed: u32 = 0, // 88: tokens that were believed cached there when it was chosen
    attempts: u32 = 0, // 92: workers that it was sent to

    comptime {
        std.debug.assert(@sizeOf(@This()) == 96);
    }
};

/// KVEvent is one block's change in a worker's cache, as wp_on_kv_event learns it.
pub const KVEvent = extern struct {
    key: u64 = 0, // 0: Row.Key of the worker
    hash: u64 = 0, // 8: of the block, the engine's own: it is no hash of prefix_hash; 0 for EventCleared
    parent: u64 = 0, // 16: of the block before it; 0 = none, or not given
    now: i64 = 0, // 24: Unix nanoseconds at which the host got it
    worker: u32 = 0, // 32: Row.Worker
    kind: u32 = 0, // 36: Event* kinds
    tier: u32 = 0, // 40: Tier* kinds
    tokens: u32 = 0, // 44: in the block

    comptime {
        std.debug.assert(@sizeOf(@This()) == 48);
    }
};

/// Talk is a conversation that may move to another worker, as wp_plan learns it: its worker leaves, or another has come.
pub const Talk = extern struct {
    value: f64 = 0, // 0: of its move; the greater moves first. The guest may write another; 0 and less = it stays
    session: u64 = 0, // 8: hash of the session key, as in its Header; 0 = none
    tenant: u64 = 0, // 16: hash of the tenant; 0 = none
    caller: u64 = 0, // 24: hash of the caller's name; 0 = none
    model: u64 = 0, // 32: hash of the model's name, as in its Header; 0 = none named
    tokens: u32 = 0, // 40: of its last prompt, which the new worker computes or loads
    seconds: f32 = 0, // 44: to compute that prompt on a worker of slowness 1
    returns: f32 = 0, // 48: probability of another turn, by the silence and the gaps so far
    silence: f32 = 0, // 52: seconds since its last turn was answered
    gap: f32 = 0, // 56: mean seconds between its turns; 0 = it has had one
    priority: i32 = 0, // 60: of its last request, lower first

    comptime {
        std.debug.assert(@sizeOf(@This()) == 64);
    }
};

/// Holder is what prefix_best and prefix_worker answer: what the host's index believes of one worker.
pub const Holder = extern struct {
    key: u64 = 0, // 0: Row.Key
    matched: u32 = 0, // 8: leading blocks of the prompt that it holds
    row: i32 = 0, // 12: its row; -1 = no candidate for this request
    blocks: u32 = 0, // 16: blocks that it holds in all
    tail_secs: f32 = 0, // 20: seconds since the block that it will push out next was last used; negative = not known

    comptime {
        std.debug.assert(@sizeOf(@This()) == 24);
    }
};

/// Tier is what cache_tiers answers of one tier of a worker.
pub const Tier = extern struct {
    kind: u32 = 0, // 0: Tier* kinds
    flags: u32 = 0, // 4: zero
    capacity: u64 = 0, // 8: tokens that it holds at most; 0 = not known
    used: u64 = 0, // 16: tokens that it holds
    token_sec: f32 = 0, // 24: seconds to bring one token's KV to the GPU; 0 for the GPU itself
    reuse: f32 = 0, // 28: chance that the next block pushed out of it is wanted again; negative = not known

    comptime {
        std.debug.assert(@sizeOf(@This()) == 32);
    }
};

/// The host's functions. (ptr, cap) names a buffer: the answer is the length needed, and the buffer is filled only if cap
/// suffices. A negative answer is one of ERR_*. In a native test such a function is one of the test's, as
/// wp_own.
pub const host = struct {
    /// Str* kinds; the kind decides what index is
    pub const @"str" = imported(fn (kind: i32, index: i32, ptr: [*]u8, cap: u32) callconv(.c) i32, "str");
    /// leading blocks of the prompt on that row's worker, all tiers
    pub const @"prefix_match" = imported(fn (row: i32) callconv(.c) i32, "prefix_match");
    /// chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
    pub const @"prefix_hash" = imported(fn (block: i32) callconv(.c) u64, "prefix_hash");
    /// the module's own namespace; ErrNotFound
    pub const @"kv_get" = imported(fn (kptr: [*]const u8, klen: u32, ptr: [*]u8, cap: u32) callconv(.c) i32, "kv_get");
    /// olen 0 = must be absent; ErrConflict
    pub const @"kv_cas" = imported(fn (kptr: [*]const u8, klen: u32, optr: [*]const u8, olen: u32, nptr: [*]const u8, nlen: u32, ttl_ms: i32) callconv(.c) i32, "kv_cas");
    /// i64 counter; math.MinInt64 on error
    pub const @"kv_incr" = imported(fn (kptr: [*]const u8, klen: u32, delta: i64, ttl_ms: i32) callconv(.c) i64, "kv_incr");
    /// Level*; rate-limited
    pub const @"log" = imported(fn (level: i32, ptr: [*]const u8, len: u32) callconv(.c) void, "log");
    /// lines below it are dropped
    pub const @"log_level" = imported(fn () callconv(.c) i32, "log_level");
    /// adds f64 value to the module's counter of that name
    pub const @"metric" = imported(fn (ptr: [*]const u8, len: u32, value_bits: u64) callconv(.c) void, "metric");
    /// text for the operator about the call that is about to fail
    pub const @"error" = imported(fn (ptr: [*]const u8, len: u32) callconv(.c) void, "error");
    /// a Holder: who holds the most of the prompt, of all workers of the pool,
    /// those that are no candidates too
    pub const @"prefix_best" = imported(fn (ptr: [*]u8, cap: u32) callconv(.c) i32, "prefix_best");
    /// a Holder: that row's worker, by the host's own history
    pub const @"prefix_worker" = imported(fn (row: i32, ptr: [*]u8, cap: u32) callconv(.c) i32, "prefix_worker");
    /// leading blocks of another chain of n hashes, as prefix_hash gave them,
    /// that the row's worker holds; n at most MaxChain
    pub const @"prefix_match_key" = imported(fn (row: i32, ptr: [*]const u8, n: u32) callconv(.c) i32, "prefix_match_key");
    /// a Tier for each tier that the row's worker has, GPU first
    pub const @"cache_tiers" = imported(fn (row: i32, ptr: [*]u8, cap: u32) callconv(.c) i32, "cache_tiers");
    /// sets Row.Own of the worker of that Row.Key, for all instances; ErrInvalid
    /// for NaN and infinities, ErrNotFound for no worker that a row has shown
    pub const @"own" = imported(fn (key: u64, value: f64) callconv(.c) i32, "own");
    /// that number; 0 also for no such worker
    pub const @"own_of" = imported(fn (key: u64) callconv(.c) f64, "own_of");
    /// the values of up to MaxMany keys, each key a u32 length and its bytes;
    /// for each an i32 length and the bytes, or an Errno alone
    pub const @"kv_get_many" = imported(fn (kptr: [*]const u8, klen: u32, ptr: [*]u8, cap: u32) callconv(.c) i32, "kv_get_many");
    /// east of UTC at that time (Unix nanoseconds), in the time zone of that
    /// name, as Europe/Berlin; NoZone if there is none
    pub const @"zone_offset" = imported(fn (ptr: [*]const u8, len: u32, now: i64) callconv(.c) i32, "zone_offset");
    /// asks for something to be done with the KV cache of the request's
    /// conversation once it has been answered: Cache* kinds, which say what the
    /// others are; ErrNotFound for no such row, ErrLimit beyond MaxWishes
    pub const @"cache" = imported(fn (what: i32, row: i32, amount: i32, ptr: [*]const u8, len: u32) callconv(.c) i32, "cache");

    fn imported(comptime F: type, comptime name: []const u8) *const F {
        if (builtin.cpu.arch != .wasm32) return @extern(*const F, .{ .name = "wp_" ++ name });
        return @extern(*const F, .{ .name = name, .library_name = "warmpath_v1" });
    }
};

// What a module exports. wp_frame and wp_pick are below; write those of the others that you need, as
//
//   export fn wp_tick(now: i64) void { ... }
//
//   wp_frame(max_workers: i32) [*]const u8
//     asked at start, and again when the fleet outgrows max_workers
//   wp_pick() i64
//     reads the frame; see Pack
//   wp_configure(len: u32) i32
//     options of len bytes stand at the frame's address, see AppendOption; 0 = accepted
//   wp_maint() void
//     called between picks every 256 calls: let the guest's runtime collect garbage
//   wp_wants() i32
//     asked once, after wp_configure: Want* bits. Without it: all calls exported
//   wp_reasons() u32
//     asked once, after wp_configure: names of reason codes stand at the frame's
//     address as pairs, see AppendOption; the key is the code in decimal.
//     At most MaxReasons
//   wp_tick(now: i64) void
//     about once a second, Unix nanoseconds
//   wp_on_first_token(n: u32) void
//     n Outcomes stand at the frame's address: their first bytes came
//   wp_on_complete(n: u32) void
//     n Outcomes: they ended
//   wp_on_kv_event(n: u32) void
//     n KVEvents of workers of the pool
//   wp_classify() i64
//     reads the header alone of a request that is about to wait in the pool's queue,
//     with a pick's fuel and time; see PackClass. The greater class goes first
//   wp_filter() i64
//     reads the frame of all workers that are up, and writes the rows that the
//     request may use to the order area; see Pack: their number stands in place of a
//     row, 0 = none; Decline leaves all; Reject turns the client away
//   wp_plan(n: u32) void
//     n Talks stand at the frame's address: conversations whose worker leaves, or to
//     move to one that has come. The guest may write their Values. They are Returns
//     at first, or 0 for one that had better have its next turn before

const max_workers = 4096;

pub var area: extern struct { header: Header, rows: [max_workers]Row, order: [max_workers]u32 } = undefined;
var rows: u32 = max_workers;

var turned_away: [MAX_TEXT]u8 = undefined; // the text of a rejection, which the host reads after the call

/// A count as a float.
pub fn float(n: anytype) f64 {
    return @floatFromInt(n);
}

// Answers.

/// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code, which people see by the name that the
/// export wp_reasons gives it.
pub fn to(worker: i32, reason: u16) u64 {
    return @as(u64, reason) << 32 | @as(u32, @bitCast(worker));
}

/// Gives an answer another reason.
pub fn because(answer: u64, reason: u16) u64 {
    return answer & ~@as(u64, 0xffff << 32) | @as(u64, reason) << 32;
}

/// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
pub fn only(answer: u64) u64 {
    return answer | @as(u64, FLAG_ONLY) << 48;
}

/// Asks the host to keep the request's session with the worker of an answer from now on.
pub fn bind(answer: u64) u64 {
    return answer | @as(u64, FLAG_BIND) << 48;
}

/// The result of wp_classify: a class, of which the greater goes first, -100 to 100, and the share of the key beside others
/// of the class, .1 to 100; 0 leaves the key's own. [[keys]] priority bounds the class: without it nobody gets above 0.
pub fn class_of(number: i32, share: f32) u64 {
    return @as(u64, @as(u32, @bitCast(share))) << 32 | @as(u32, @bitCast(number));
}

/// Names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer
/// says only. There is room for as many as wp_frame was asked for; what is more counts for nothing.
pub fn then(r: *Header, worker: u32) void {
    if (r.order_len >= rows) return;
    const order: [*]u32 = @ptrCast(@as([*]Row, &area.rows) + rows);
    order[r.order_len] = worker;
    r.order_len += 1;
}

/// Keeps the best four workers of a request: the choice and its alternatives.
///
///   var k: wp.Ranking = .{};
///   for (workers, 0..) |*w, i| k.enter(i, w, r.ttft(w));
///   return wp.because(k.choose(r), wp.REASON_COST);
pub const Ranking = struct {
    best: [4]Ranked = undefined, // the best first
    n: usize = 0,

    pub const Ranked = struct {
        cost: f64,
        worker: *const Row,
        row: usize,

        fn before(p: Ranked, q: Ranked) bool {
            if (p.cost != q.cost) return p.cost < q.cost;
            const a = p.worker.per_weight(float(p.worker.in_flight));
            const b = q.worker.per_weight(float(q.worker.in_flight));
            if (a != b) return a < b;
            return p.worker.per_weight(float(p.worker.sent)) < q.worker.per_weight(float(q.worker.sent));
        }
    };

    /// Ranks worker i at a cost; the smallest is best. Enter workers by ascending index. Ties go to the fewest in flight,
    /// then the fewest sent, each per unit of weight, then the index. A cost that is no number is the worst,
    /// and the router's log says so.
    pub fn enter(k: *Ranking, i: usize, w: *const Row, cost: f64) void {
        const nan = cost != cost;
        const said = "a cost is no number, as 0/0 gives: its worker is ranked last";
        if (nan and builtin.cpu.arch == .wasm32) host.log(LEVEL_WARN, said, said.len);
        const p: Ranked = .{ .cost = if (nan) std.math.inf(f64) else cost, .worker = w, .row = i };
        if (k.n == 4 and !p.before(k.best[3])) return;
        if (k.n < 4) k.n += 1;
        var at = k.n - 1;
        while (at > 0 and p.before(k.best[at - 1])) : (at -= 1) k.best[at] = k.best[at - 1];
        k.best[at] = p;
    }

    /// Names the alternatives and answers with the best worker, best[0]; declines if none was entered.
    pub fn choose(k: *const Ranking, r: *Header) u64 {
        if (k.n == 0) return to(DECLINE, 0);
        for (k.best[1..k.n]) |other| then(r, @intCast(other.row));
        return to(@intCast(k.best[0].row), 0);
    }
};

// Chance and hashes.

var seed: u64 = 0;
var drawn: u64 = 0;

fn mix(x: u64) u64 {
    const y = (x ^ x >> 30) *% 0xbf58476d1ce4e5b9;
    const z = (y ^ y >> 27) *% 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/// The number of a text that the request's model, session, tenant and caller are of theirs: FNV-1a, the same over restarts
/// and routers. It is 0 for the empty text alone.
pub fn hash(of: []const u8) u64 {
    var h: u64 = 0xcbf29ce484222325;
    for (of) |c| h = (h ^ c) *% 0x100000001b3;
    return if (of.len == 0) 0 else @max(1, h);
}

/// The rank of a worker for what has the hash, as hash or session, from 0 to 1: the worker of the greatest is its place
/// (rendezvous hashing). All routers agree on it. If a worker leaves, only what it had moves; a worker of twice the weight
/// is the place of twice as many.
pub fn place(of: u64, w: *const Row) f64 {
    const u = float(mix(of ^ w.key) >> 11) / (1 << 53);
    return if (w.weight > 0 and w.weight != 1) std.math.pow(f64, u, 1 / @as(f64, w.weight)) else u;
}

// Texts of the request. Each is valid until the next is asked for, and empty if there is none, or one above 1,024 bytes.

var asked: [1024]u8 = undefined;

fn ask(kind: i32, index: i32) []const u8 {
    const n = host.str(kind, index, &asked, asked.len);
    return if (n > 0 and n <= asked.len) asked[0..@intCast(n)] else "";
}

pub fn session() []const u8 {
    return ask(STR_SESSION, 0);
}

pub fn model() []const u8 {
    return ask(STR_MODEL, 0);
}

pub fn tenant() []const u8 {
    return ask(STR_TENANT, 0);
}

pub fn caller() []const u8 {
    return ask(STR_CALLER, 0);
}

pub fn worker_id(i: usize) []const u8 {
    return ask(STR_WORKER, @intCast(i));
}

/// The request's header of that name, if the strategy's allow list has "headers:" and its name in lower case.
pub fn header(name: []const u8) []const u8 {
    if (name.len > asked.len) return "";
    @memcpy(asked[0..name.len], name);
    return ask(STR_HEADER, @intCast(name.len));
}

var label_names: [64][]const u8 = @splat("");
var label_bytes: [64][320]u8 = undefined;
var label_epoch: u32 = 0;
var label_count: u32 = 0; // in wp_classify there are none

// The names of the label bits. They change only with the configuration, so that a pick asks for them seldom.
fn label_list(r: *const Header) *const [64][]const u8 {
    if (label_epoch == r.labels_epoch and label_count == r.labels) return &label_names;
    for (&label_names, &label_bytes, 0..) |*name, *bytes, bit| {
        const t = if (bit < r.labels) ask(STR_LABEL, @intCast(bit)) else "";
        const n = if (t.len <= bytes.len) t.len else 0;
        @memcpy(bytes[0..n], t[0..n]);
        name.* = bytes[0..n];
    }
    label_epoch = r.labels_epoch;
    label_count = r.labels;
    return &label_names;
}

fn cut(name: []const u8, key: []const u8) ?[]const u8 {
    if (name.len <= key.len or name[key.len] != '=' or !std.mem.eql(u8, name[0..key.len], key)) return null;
    return name[key.len + 1 ..];
}

// Records of the calls beside the picks, valid during the call.

/// The n records of wp_on_first_token(n) or wp_on_complete(n).
pub fn outcomes(n: u32) []const Outcome {
    return @as([*]const Outcome, @ptrCast(@alignCast(&area)))[0..n];
}

/// The n records of wp_on_kv_event(n).
pub fn events(n: u32) []const KVEvent {
    return @as([*]const KVEvent, @ptrCast(@alignCast(&area)))[0..n];
}

/// The n records of wp_plan(n). Write the value of each.
pub fn talks(n: u32) []Talk {
    return @as([*]Talk, @ptrCast(@alignCast(&area)))[0..n];
}

/// The request of wp_classify, which has no workers.
pub fn request() *const Header {
    return &area.header;
}

/// Has a function say which workers the request may use, in the export wp_filter: it names them by then and returns kept, or
/// to(DECLINE, 0) if it has no opinion, or what reject returns:
///
///   fn mine(r: *wp.Header, workers: []const wp.Row) u64 {
///       const own = r.labeled("for", wp.caller());
///       for (workers, 0..) |w, i| if (w.labels & own != 0) wp.then(r, @intCast(i));
///       return wp.kept(r);
///   }
///
///   export fn wp_filter() u64 {
///       return wp.filtered(mine);
///   }
pub fn filtered(f: fn (r: *Header, workers: []const Row) u64) u64 {
    const r = &area.header;
    if (r.rows == 0 or r.rows > rows) return to(HOLD, 0); // no answer of a filter: to decline would let all stay
    r.order_len = 0;
    return f(r, area.rows[0..r.rows]);
}

/// Keeps the workers that then has named; nobody else gets the request.
pub fn kept(r: *const Header) u64 {
    return to(@intCast(r.order_len), 0);
}

/// Adds a value, not below zero, to the strategy's own counter of that name.
pub fn count(name: []const u8, value: f64) void {
    host.metric(name.ptr, @intCast(name.len), @bitCast(value));
}

// Options and names of reasons.

/// The options of the configuration, in the export wp_configure(len), asked for one by one:
///
///   var o = wp.options(len);
///   each = o.number("each", 0.01);
///   return o.done();
///
/// or taken one after the other, by next, as key and value.
pub fn options(len: u32) Options {
    return .{ .left = @as([*]const u8, @ptrCast(&area))[0..len] };
}

pub const Options = struct {
    left: []const u8,
    known: u64 = 0, // a bit for each option, in their order, that was asked for
    wrong: ?[]const u8 = null,

    pub const Option = struct { key: []const u8, value: []const u8 };

    pub fn next(o: *Options) ?Option {
        return .{ .key = o.take() orelse return null, .value = o.take() orelse return null };
    }

    /// The option as a number.
    pub fn number(o: *Options, key: []const u8, absent: f64) f64 {
        const found = o.find(key) orelse return absent;
        return decimal(found.value) orelse {
            o.wrong = found.key;
            return absent;
        };
    }

    /// The option's text. It stays; all such texts together have room for 4,096 bytes.
    pub fn string(o: *Options, key: []const u8, absent: []const u8) []const u8 {
        const found = o.find(key) orelse return absent;
        const n = found.value.len;
        if (n > strings.len - used) {
            o.wrong = found.key;
            return absent;
        }
        @memcpy(strings[used..][0..n], found.value);
        used += n;
        return strings[used - n .. used];
    }

    /// Refuses the options if one has a wrong value, or was not asked for. Return what it returns.
    pub fn done(o: *Options) i32 {
        if (o.wrong) |key| return refuse(key);
        var i: usize = 0;
        while (o.next()) |option| : (i += 1) {
            if (i >= 64 or o.known >> @intCast(i) & 1 == 0) return refuse(option.key);
        }
        return 0;
    }

    fn find(o: *Options, key: []const u8) ?Option {
        var each: Options = .{ .left = o.left };
        for (0..64) |i| {
            const option = each.next() orelse break;
            if (!std.mem.eql(u8, option.key, key)) continue;
            o.known |= @as(u64, 1) << @intCast(i);
            return option;
        }
        return null;
    }

    fn take(o: *Options) ?[]const u8 {
        if (o.left.len < 4) return null;
        const n = std.mem.readInt(u32, o.left[0..4], .little);
        if (n > o.left.len - 4) return null;
        defer o.left = o.left[4 + n ..];
        return o.left[4..][0..n];
    }
};

var strings: [4096]u8 = undefined;
var used: usize = 0;

/// The text's number, as 12, -.05 or 1e-3; null if it is none. std.fmt.parseFloat is 20 KB.
pub fn decimal(text: []const u8) ?f64 {
    var n: f64 = 0;
    var scale: i32 = 0;
    var exponent: i32 = 0;
    var digits: u32 = 0;
    var point = false;
    const minus = text.len > 0 and text[0] == '-';
    var i: usize = @intFromBool(minus or (text.len > 0 and text[0] == '+'));
    while (i < text.len and (text[i] == '.' or std.ascii.isDigit(text[i]))) : (i += 1) {
        if (text[i] == '.') {
            if (point) return null;
            point = true;
            continue;
        }
        n = n * 10 + float(text[i] - '0');
        scale += @intFromBool(point);
        digits += 1;
    }
    if (digits > 0 and i < text.len and (text[i] == 'e' or text[i] == 'E')) {
        i += 1;
        const below = i < text.len and text[i] == '-';
        if (below or (i < text.len and text[i] == '+')) i += 1;
        digits = 0;
        while (i < text.len and std.ascii.isDigit(text[i]) and exponent < 1000) : (i += 1) {
            exponent = exponent * 10 + text[i] - '0';
            digits += 1;
        }
        if (below) exponent = -exponent;
    }
    if (digits == 0 or i < text.len) return null;
    var power: f64 = 1;
    for (0..@abs(exponent - scale)) |_| power *= 10;
    n = if (exponent < scale) n / power else n * power;
    if (n - n != 0) return null;
    return if (minus) -n else n;
}

/// Tells the operator that an option is unknown or has a wrong value. Return what it returns.
pub fn refuse(key: []const u8) i32 {
    const words = "unknown option, or wrong value: ";
    var text: [160]u8 = undefined;
    const n = @min(key.len, text.len - words.len);
    @memcpy(text[0..words.len], words);
    @memcpy(text[words.len..][0..n], key[0..n]);
    host.@"error"(&text, @intCast(words.len + n));
    return ERR_INVALID;
}

pub const Name = struct { code: []const u8, name: []const u8 };

/// Writes names of reasons where the host reads them, in the export wp_reasons, which returns what it returns:
/// reasons(&.{.{ .code = "10", .name = "least cost" }}).
pub fn reasons(names: []const Name) i32 {
    const b: [*]u8 = @ptrCast(&area);
    var at: usize = 0;
    for (names) |one| {
        for ([_][]const u8{ one.code, one.name }) |text| {
            std.mem.writeInt(u32, b[at..][0..4], @intCast(text.len), .little);
            @memcpy(b[at + 4 ..][0..text.len], text);
            at += 4 + text.len;
        }
    }
    return @intCast(at);
}

/// Does what reasons does with names for the codes from REASON_OWN on: wp.named(&.{ "learnt", "by chance" }).
pub fn named(comptime own: []const []const u8) i32 {
    comptime var all: [own.len]Name = undefined;
    inline for (own, 0..) |name, i| all[i] = .{ .code = std.fmt.comptimePrint("{d}", .{REASON_OWN + i}), .name = name };
    const list = all;
    return reasons(&list);
}

/// Makes a module of the strategy: comptime { wp.strategy(route); }. workers has r.rows entries, at least one.
pub fn strategy(comptime route: fn (r: *Header, workers: []const Row) u64) void {
    if (builtin.cpu.arch != .wasm32) return;
    const exports = struct {
        fn marker() callconv(.c) void {}

        fn frame(max: u32) callconv(.c) *anyopaque {
            if (max > max_workers) @trap();
            rows = max;
            return &area;
        }

        fn pick() callconv(.c) u64 {
            const r = &area.header;
            if (r.rows == 0 or r.rows > rows) return to(DECLINE, 0);
            return route(r, area.rows[0..r.rows]);
        }
    };
    @export(&exports.marker, .{ .name = "warmpath_abi_1_3" });
    @export(&exports.frame, .{ .name = "wp_frame" });
    @export(&exports.pick, .{ .name = "wp_pick" });
}
