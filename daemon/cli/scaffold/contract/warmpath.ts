// What a strategy and its host agree on: warmpath's ABI 1.3, written from warmpath's sdk/abi: constants, records, imports
// and exports. Below them is what connects a strategy to it. A later version of warmpath still runs what is built with it.

// Version is major<<16 + minor of this package. A host refuses another major version. What a minor version may change
// stands in the package's documentation.
export const VERSION: u32 = 65539;

// OrderSize is the bytes of an entry of the order area.
export const ORDER_SIZE: u32 = 4;

// Values of wp_pick's low half that are no row.
export const DECLINE: i32 = -1; // the host's fallback answers
export const REJECT: i32 = -2; // the client is turned away: see Header.RejectStatus
export const HOLD: i32 = -3; // the request waits for a better worker: see Header.HoldMillis; since 1.2

// Flags of a decision.
export const FLAG_BIND: u16 = 1; // bind the request's session to the chosen worker
export const FLAG_ONLY: u16 = 2; // no worker but the chosen one and those in the order area may get the request; since 1.2

// HeaderSize is the bytes of a Header.
export const HEADER_SIZE: u32 = 272;

// Bits of Header.Flags.
export const HEADER_STREAM: u32 = 1; // the client asked for a stream
export const HEADER_EVENTS: u32 = 2; // the matches of all rows come from the workers' KV events, not from routed history
export const HEADER_TOKENS: u32 = 4; // the prompt's ids are known, and one block of the rows is one token; since 1.1
export const HEADER_ANSWER: u32 = 8; // for the worker that answers; another one may compute the prompt; since 1.2
export const HEADER_PREFILL: u32 = 16; // for the worker that computes the prompt; another one answers; since 1.2
export const HEADER_FINAL: u32 = 32; // the client says that no request of the session follows; since 1.3

// Kinds of Header.Endpoint. A request through another door, as SageMaker's, has the kind that its body has.
export const ENDPOINT_OTHER: u32 = 0;
export const ENDPOINT_COMPLETIONS: u32 = 1; // /v1/completions, /inference/v1/generate
export const ENDPOINT_CHAT: u32 = 2; // /v1/chat/completions
export const ENDPOINT_RESPONSES: u32 = 3; // /v1/responses
export const ENDPOINT_MESSAGES: u32 = 4; // /v1/messages
export const ENDPOINT_EMBEDDINGS: u32 = 5; // /v1/embeddings, /pooling
export const ENDPOINT_SCORE: u32 = 6; // /score, /rerank, /classify
export const ENDPOINT_TOKENIZE: u32 = 7; // /tokenize, /detokenize, /v1/messages/count_tokens

// MaxText bounds the text of a rejection and the name of a reason, in bytes.
export const MAX_TEXT: u32 = 256;

// RowSize is the bytes of a Row.
export const ROW_SIZE: u32 = 184;

// Bits of Row.State. Those of adapters count where the request's model is one. From RowLive on since 1.1. A worker
// without a role has neither of the last two: it computes prompts and answers.
export const ROW_SLOW_START: u32 = 1; // back a short while ago: send little
export const ROW_STALE: u32 = 2; // metrics are older than three scrape intervals
export const ROW_LIVE: u32 = 4; // GPU, L1 and L2 come from the worker's own KV events, not from routed history
export const ROW_ADAPTER: u32 = 8; // the adapter runs there
export const ROW_ADAPTER_WAITING: u32 = 16; // a request waits there for the adapter to be loaded
export const ROW_ADAPTERS_FULL: u32 = 32; // as many other adapters run there as it takes
export const ROW_PREFILL: u32 = 64; // it only computes prompts, whose answers others write; since 1.2
export const ROW_DECODE: u32 = 128; // it computes no prompts for others; since 1.2
export const ROW_JOINS: u32 = 256; // it came while others had requests, and has not caught up yet; since 1.2

// The bits of Row.State from RowLoadShift on are the milliseconds that the request's adapter costs there before it
// runs: its load, and its place if none is free. 0 where it runs, and where the model is no adapter. 0 before 1.2.
export const ROW_LOAD_SHIFT: u32 = 16;
export const ROW_LOAD_MAX: u32 = 65535;

// Brim is the part of a worker's KV cache that requests may hold. Past it a request waits until others end, or the
// engine preempts one, whose whole context is then computed again. An engine is full before its last token is taken: it
// gives out blocks, and answers grow.
export const BRIM: f64 = 0.9;

// Sizes of the records in bytes.
export const OUTCOME_SIZE: u32 = 96;
export const KV_EVENT_SIZE: u32 = 48;
export const HOLDER_SIZE: u32 = 24;
export const TIER_SIZE: u32 = 32;
export const TALK_SIZE: u32 = 64;

// Kinds of KVEvent.Kind.
export const EVENT_STORED: u32 = 1; // the block is in the tier now
export const EVENT_REMOVED: u32 = 2; // it is no longer
export const EVENT_CLEARED: u32 = 3; // the worker holds nothing any more

// Kinds of tiers.
export const TIER_GPU: u32 = 0; // the worker's GPU
export const TIER_L1: u32 = 1; // the CPU memory of the worker's node
export const TIER_L2: u32 = 2; // shared among workers

// Bits of wp_wants: what costs the host something and is therefore done only for modules that ask.
export const WANT_COST: u32 = 1; // fill Row.Cost
export const WANT_TICK: u32 = 2; // call wp_tick
export const WANT_FIRST_TOKEN: u32 = 4; // call wp_on_first_token
export const WANT_COMPLETE: u32 = 8; // call wp_on_complete
export const WANT_KV_EVENTS: u32 = 16; // call wp_on_kv_event
export const WANT_HELD: u32 = 32; // fill GPU, L1 and L2 by what the workers report: needs the prompt's ids
export const WANT_CLASSIFY: u32 = 64; // call wp_classify; since 1.2
export const WANT_PAIR: u32 = 128; // add rows of prefillers, of which PairRow may name one; since 1.2
export const WANT_FILTER: u32 = 256; // call wp_filter; since 1.2
export const WANT_CANDIDATES: u32 = 512; // rows of candidates suffice where many workers can take the request; since 1.2
export const WANT_PLAN: u32 = 1024; // call wp_plan; since 1.3
export const WANT_SESSIONS: u32 = 2048; // with WantCandidates: all rows for a session that has no worker yet; since 1.3
export const WANT_ALL: u32 = 4095; // WantAll are the bits that this version knows. A module that sets another is refused.

// WantRows are the bits that change what a frame has.
export const WANT_ROWS: u32 = 2721;

// WantNotices are the bits of the calls off the request path.
export const WANT_NOTICES: u32 = 30;

// MaxReasons bounds the reasons that wp_reasons names. A name has at most MaxText bytes.
export const MAX_REASONS: u32 = 256;

// Kinds of cache.
export const CACHE_KEEP: i32 = 0; // keep the prompt where it is for amount milliseconds
export const CACHE_DROP: i32 = 1; // the session of that name, or the request's own if len is 0, has ended
export const CACHE_PREFETCH: i32 = 2; // have the row's worker hold the prompt amount milliseconds after the answer
export const CACHE_COPY: i32 = 3; // have the row's worker hold the first amount blocks of the prompt, too

// MaxWishes bounds the calls of cache in one pick.
export const MAX_WISHES: u32 = 8;

// MaxMany bounds the keys of one kv_get_many.
export const MAX_MANY: u32 = 4096;

// NoZone is zone_offset's answer to a name of no time zone.
export const NO_ZONE: i32 = -2147483648;

// MaxChain bounds the hashes that prefix_match_key takes: 2 MiB of text.
export const MAX_CHAIN: u32 = 16384;

// Errno values, as negative results of imports.
export const ERR_NOT_FOUND: i32 = -1; // no such key, row or string
export const ERR_CONFLICT: i32 = -2; // the value is not the one expected
export const ERR_INVALID: i32 = -3; // a pointer, length or kind is out of range
export const ERR_FORBIDDEN: i32 = -4; // the configuration of the strategy does not allow it; see allow
export const ERR_LIMIT: i32 = -5; // the module's quota is used up

// Kinds of str.
export const STR_SESSION: i32 = 0; // the session key
export const STR_MODEL: i32 = 1; // the model's name
export const STR_WORKER: i32 = 2; // the worker id of row index
export const STR_TENANT: i32 = 3; // the cache salt
export const STR_CALLER: i32 = 4; // the caller's name; since 1.1
export const STR_LABEL: i32 = 5; // the label of bit index, as tier=batch; since 1.1
export const STR_HEADER: i32 = 6; // a header of the request, whose name of index bytes stands at ptr; since 1.1

// Levels of log.
export const LEVEL_DEBUG: i32 = 0;
export const LEVEL_INFO: i32 = 1;
export const LEVEL_WARN: i32 = 2;
export const LEVEL_ERROR: i32 = 3;

// MaxOptions bounds the encoded options, in bytes.
export const MAX_OPTIONS: u32 = 65536;

// The shared reasons.
export const REASON_NONE: u16 = 0;
export const REASON_PREFIX: u16 = 1; // it holds the longest prefix of the prompt
export const REASON_LOAD: u16 = 2; // another holds a longer prefix, and using it would cost more than it saves
export const REASON_COLD: u16 = 3; // no worker holds any of the prompt: the least cost
export const REASON_PREDICTED: u16 = 4; // there are no KV events: by the history of what was routed
export const REASON_SESSION: u16 = 5; // the session is bound to it
export const REASON_HASH: u16 = 6; // a new session, placed by hashing
export const REASON_SPILL: u16 = 7; // a new session, hashed past a worker that has too much in flight
export const REASON_LEAST: u16 = 8; // the fewest in flight
export const REASON_TURN: u16 = 9; // its turn
export const REASON_COST: u16 = 10; // the least cost, of whatever the strategy reckons with
export const REASON_OWN: u16 = 256; // ReasonOwn is the first code that is free for a strategy's own reasons.

// Header describes one request. Offsets are in the comments; a test compares them with the compiler's. A module made
// for 1.0 gets the first 128 bytes, one for 1.1 the first 192, one for 1.2 the first 264.
@unmanaged
export class Header {
  version: u32; // 0: of the layout: major<<16 + minor
  header_bytes: u32; // 4: size of the header
  row_bytes: u32; // 8: distance of two rows
  rows: u32; // 12: rows that follow, at least 1
  seq: u64; // 16: number of the request among its pool's for the same model, from 0, exact over all instances
  now: i64; // 24: wall clock, Unix nanoseconds, as of the request's arrival
  random: u64; // 32: fresh from the host for each pick
  prompt_tokens: u32; // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
  prompt_blocks: u32; // 44: blocks of the prompt in the unit of the Row's match counts
  block_tokens: f32; // 48: tokens in a block, by the current estimate; 0 if there is no prompt
  max_tokens: u32; // 52: the request's limit on generated tokens; 0 = not given
  priority: i32; // 56: the body's priority, lower first; default 0
  flags: u32; // 60: HeaderStream and the other Header bits
  model: u64; // 64: hash of the model's name; 0 = none named
  session: u64; // 72: hash of the session key; 0 = none
  tenant: u64; // 80: hash of the tenant (cache salt); 0 = none
  bound: i32; // 88: row of the worker the session is bound to; -1 = none, or it is not a candidate
  best_row: i32; // 92: row with the most matched blocks; -1 = no match
  best_match: u32; // 96: blocks matched there
  lambda: f32; // 100: requests per second and worker: over 30 s, or half of the newest rate if that is more
  c1: f32; // 104: seconds to prefill one token on a worker of slowness 1
  c2: f32; // 108: further seconds a token for each token before it (attention)
  inv_bw_l1: f32; // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
  inv_bw_l2: f32; // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
  order_len: u32; // 120: written by the guest: alternatives in the order area; the host clears it
  endpoint: u32; // 124: Endpoint* kinds; since 1.1
  caller: u64; // 128: hash of the caller's name (the configured name of the key it used); 0 = none
  deadline: i64; // 136: Unix nanoseconds after which nobody waits for the answer any more; 0 = none
  labels: u32; // 144: names of label bits there are; StrLabel asks for them
  labels_epoch: u32; // 148: another number whenever these names may be others
  reject_status: u32; // 152: HTTP status, 400 to 599; another number counts as 429
  retry_after: u32; // 156: seconds that the client is asked to wait; 0 = the host's own estimate
  reject_text: u32; // 160: address of the text that the client gets, UTF-8; what is beyond MaxText bytes is cut
  reject_len: u32; // 164: its length; 0 = the host's own words
  parent: u64; // 168: hash of the session that began this one, as a subagent's; 0 = none
  turn: u32; // 176: number of the request in its session, from 1; 0 = not known
  since_last: f32; // 180: seconds since the request before in its session began; 0 = it is the first, or not known
  expected_output: u32; // 184: tokens that the answer is expected to have, by those before; 0 = not known
  expected_turns: u32; // 188: requests that the session is expected to send after this one; 0 = none, or not known
  last: i32; // 192: row of the worker that the session's request before went to; -1 = none, or no candidate
  parent_row: i32; // 196: row of the worker that the parent's last request went to; -1 = none, or no candidate
  configured: u32; // 200: workers of the pool that the client's key may use, with a row or not
  up: u32; // 204: of them those that answer their health checks
  queue_depth: u32; // 208: requests that wait in the pool's queue; 0 also without one
  flows_waiting: u32; // 212: flows of them: keys, and agents of a key
  waited: f32; // 216: seconds that the request has waited there
  hold_millis: u32; // 220: written by the guest with Hold: how long it may wait in all; the host clears it
  prefillers: u32; // 224: last rows, which only compute prompts and cannot be chosen; 0 without WantPair
  pair_row: i32; // 228: written by the guest with WantPair: row that computes the prompt; the host writes -1, none
  left_out: u32; // 232: workers that take requests and have no row, about; 0 = none, and all means are 0
  mean_wait: f32; // 236: of Row.Wait
  mean_slow: f32; // 240: of Row.Slow
  mean_load: f32; // 244: of Row.Load
  mean_flight: f32; // 248: requests in flight per unit of weight
  mean_prompt: f32; // 252: prompt tokens of a request in flight; 0 = none is
  kv_in_flight: f32; // 256: part of the workers' KV caches that prompts in flight have; 1 = not known
  uneven: u32; // 260: 1 if a worker has another weight than 1, or is in slow start
  gap: f32; // 264: mean seconds between requests of a session of such clients, by those before; 0 = not known
  next: u32; // 268: 1 + the row whose turn it is by Seq, where some are left out; 0 = it is row Seq modulo rows

  // Turns the request away with a status, 400 to 599, and a text, of which 256 bytes count. The client is asked to come
  // again after so many seconds; 0 = the host's estimate. Return what it returns.
  reject(status: u32, text: string, seconds: u32): u64 {
    const b = String.UTF8.encode(text);
    this.reject_status = status;
    this.retry_after = seconds;
    this.reject_text = <u32>turned_away;
    this.reject_len = min<u32>(b.byteLength, MAX_TEXT);
    memory.copy(turned_away, changetype<usize>(b), this.reject_len);
    return to(REJECT, 0);
  }

  // Turns the request away for want of a worker: 503, and the host's estimate of when to come again.
  unavailable(text: string): u64 {
    return this.reject(503, text, 0);
  }

  // Has the request wait for a better worker, at most so many seconds since it began to wait, and no longer than the pool's
  // queue lets it. wp_pick is called again when something has changed; waited is how long it has waited. When the time is
  // over, and at once in a pool without a queue, the host's fallback chooses. Return what it returns.
  hold(seconds: f64): u64 {
    this.hold_millis = seconds > 0 ? <u32>min<f64>(seconds * 1000, 4294967295) : 0;
    return to(HOLD, 0);
  }

  // Chooses one worker for the answer and one for the prompt; the same twice keeps the prompt from any other. For a strategy
  // whose wp_wants has WANT_PAIR: it finds the prefillers in the last prefillers rows. Return what it returns.
  pair(decoder: u32, prefiller: u32): u64 {
    this.pair_row = prefiller;
    return to(decoder, 0);
  }

  // The seconds that the worker takes for the prompt when its turn has come: what it computes, attention in, by its own
  // slowness, and what it brings to the GPU from the tiers below.
  prefill(w: Row): f64 {
    const all = <f64>this.prompt_tokens, block = <f64>this.block_tokens;
    const n = max<f64>(1, all - <f64>w.gpu * block - <f64>w.l1 * block - <f64>w.l2 * block);
    let seconds = w.slow * (<f64>this.c1 * n + <f64>this.c2 * n * (all - n / 2));
    if (this.inv_bw_l1 != 0) seconds += <f64>w.l1 * block * <f64>this.inv_bw_l1 + <f64>w.l2 * block * <f64>this.inv_bw_l2;
    return seconds;
  }

  // Predicts the seconds until the request's first token from the worker: what is queued there, and prefill.
  ttft(w: Row): f64 {
    return w.wait + this.prefill(w);
  }

  private draw(): u64 {
    if (seed != this.random) drawn = 0;
    seed = this.random;
    return mix(seed + ++drawn * 0x9e3779b97f4a7c15);
  }

  // One of 0 to n-1 by chance, another at each call; 0 for n below 2.
  pick(n: u32): u32 {
    const x = this.draw();
    return <u32>(((x >> 32) * n + (((x & 0xffffffff) * n) >> 32)) >> 32);
  }

  // True with probability p, independently at each call.
  chance(p: f64): bool {
    return <f64>(this.draw() >> 11) / 9007199254740992.0 < p;
  }

  // The bit of a row's labels for key = value, 0 if no worker of the pool has that label. Ask once, then look at all workers.
  labeled(key: string, value: string): u64 {
    const bit = label_list(this).indexOf(key + "=" + value);
    return bit < 0 ? 0 : (<u64>1) << bit;
  }

  // The value of the worker's label of that key, empty without it.
  label(w: Row, key: string): string {
    const names = label_list(this);
    for (let bit = 0; bit < names.length; bit++) {
      if (((w.labels >> bit) & 1) != 0 && names[bit].startsWith(key + "=")) return names[bit].slice(key.length + 1);
    }
    return "";
  }
}

// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its
// results as of the request's arrival. A module made for 1.0 gets the first 128 bytes, one for 1.1 the first 160.
@unmanaged
export class Row {
  worker: u32; // 0: the worker's slot in its pool, stable while the worker is configured
  state: u32; // 4: RowSlowStart and the other Row bits
  predicted: u32; // 8: leading blocks of the prompt believed held, from routed history
  gpu: u32; // 12: leading blocks held on the GPU (the best view the host has)
  l1: u32; // 16: further contiguous blocks in the worker's CPU tier
  l2: u32; // 20: further contiguous blocks in the shared tier
  running: u32; // 24: requests running, as the worker last reported
  waiting: u32; // 28: requests waiting, as the worker last reported
  in_flight: u32; // 32: requests there that have not ended, those of others too as far as they are known
  pending_tokens: u32; // 36: prompt tokens sent there without a first byte yet
  kv_usage: f32; // 40: 0..1, as the worker last reported
  ttft: f32; // 44: seconds, running mean; 0 = none seen
  tpot: f32; // 48: seconds a generated token, running mean; 0 = none seen
  metrics_age: f32; // 52: seconds since the worker's metrics were read; negative = never
  weight: f32; // 56: configured, default 1
  sessions: u32; // 60: sessions that live there, about; 0 if the request opens none
  sent: u64; // 64: requests ever sent there
  wait: f64; // 72: W: seconds of prefill queued there
  slow: f64; // 80: m: slowness, seconds per estimated second of prefill
  load: f64; // 88: rho: prefill seconds sent per second
  free_gpu: f32; // 96: tokens of free KV on the GPU
  free_l1: f32; // 100: tokens free in the CPU tier
  reuse_gpu: f32; // 104: R0: chance that the next block pushed out of the GPU is wanted again
  reuse_l1: f32; // 108: R1: the same for the CPU tier
  key: u64; // 112: hash of the worker's id, the same over restarts and routers
  lately: f32; // 120: requests sent there lately, each counted e^(-age/30 s); 0 in 1.0
  pending: f32; // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; 0 in 1.0
  cost: f64; // 128: the host's own score in seconds, the smallest is best, never negative; 0 without WantCost
  labels: u64; // 136: a bit for each label of the pool that the worker has; StrLabel names them
  flight_tokens: u32; // 144: prompt tokens of the requests in flight there
  kv_tokens: u32; // 148: tokens that its GPU's KV cache holds; 0 = not known
  price: f32; // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
  rank: u32; // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without
  held_tokens: u32; // 160: tokens of KV held by requests in flight; what they share counts once if room is short
  shared_tokens: u32; // 164: leading tokens of the prompt that are among those already
  own: f64; // 168: the strategy's own number for the worker, as own has set it; 0 at first
  delay: f64; // 176: seconds that answers take longer for the request; 0 unless prefillers answer too

  // The leading blocks of the prompt that the worker holds, in all tiers.
  matched(): u32 {
    return this.gpu + this.l1 + this.l2;
  }

  // The seconds that the request's LoRA adapter costs on the worker before it runs; 0 where it runs, and for a request that
  // names none.
  adapter_load(): f64 {
    return <f64>(this.state >> ROW_LOAD_SHIFT) * 1e-3;
  }

  per_weight(n: f64): f64 {
    return this.weight > 0 ? n / this.weight : n;
  }
}

// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
@unmanaged
export class Outcome {
  seq: u64; // 0: its Header.Seq
  now: i64; // 8: Unix nanoseconds of what happened
  model: u64; // 16: hash of the model's name, as in its Header; 0 = none named
  session: u64; // 24: hash of the session key; 0 = none
  tenant: u64; // 32: hash of the tenant; 0 = none
  caller: u64; // 40: hash of the caller's name; 0 = none
  key: u64; // 48: Row.Key of the worker that answered; 0 = none did
  worker: u32; // 56: its Row.Worker
  status: u32; // 60: HTTP status that the client got; 0 = the client went before it got one
  prompt_tokens: u32; // 64: the worker's word if it gave one, else the estimate
  cached_tokens: i32; // 68: of these found in the worker's cache, by its own count; -1 = not given
  output_tokens: i32; // 72: generated, by the worker's count; -1 = not given, or not ended yet
  reason: u32; // 76: the strategy's own reason code; 0 also = another worker failed, and the host chose this one
  ttft: f32; // 80: seconds from dispatch to the first byte; negative = there was none
  seconds: f32; // 84: from arrival until now
  believed: u32; // 88: tokens that were believed cached there when it was chosen
  attempts: u32; // 92: workers that it was sent to
}

// KVEvent is one block's change in a worker's cache, as wp_on_kv_event learns it.
@unmanaged
export class KVEvent {
  key: u64; // 0: Row.Key of the worker
  hash: u64; // 8: of the block, the engine's own: it is no hash of prefix_hash; 0 for EventCleared
  parent: u64; // 16: of the block before it; 0 = none, or not given
  now: i64; // 24: Unix nanoseconds at which the host got it
  worker: u32; // 32: Row.Worker
  kind: u32; // 36: Event* kinds
  tier: u32; // 40: Tier* kinds
  tokens: u32; // 44: in the block
}

// Talk is a conversation that may move to another worker, as wp_plan learns it: its worker leaves, or another has come.
@unmanaged
export class Talk {
  value: f64; // 0: of its move; the greater moves first. The guest may write another; 0 and less = it stays
  session: u64; // 8: hash of the session key, as in its Header; 0 = none
  tenant: u64; // 16: hash of the tenant; 0 = none
  caller: u64; // 24: hash of the caller's name; 0 = none
  model: u64; // 32: hash of the model's name, as in its Header; 0 = none named
  tokens: u32; // 40: of its last prompt, which the new worker computes or loads
  seconds: f32; // 44: to compute that prompt on a worker of slowness 1
  returns: f32; // 48: probability of another turn, by the silence and the gaps so far
  silence: f32; // 52: seconds since its last turn was answered
  gap: f32; // 56: mean seconds between its turns; 0 = it has had one
  priority: i32; // 60: of its last request, lower first
}

// Holder is what prefix_best and prefix_worker answer: what the host's index believes of one worker.
@unmanaged
export class Holder {
  key: u64; // 0: Row.Key
  matched: u32; // 8: leading blocks of the prompt that it holds
  row: i32; // 12: its row; -1 = no candidate for this request
  blocks: u32; // 16: blocks that it holds in all
  tail_secs: f32; // 20: seconds since the block that it will push out next was last used; negative = not known
}

// Tier is what cache_tiers answers of one tier of a worker.
@unmanaged
export class Tier {
  kind: u32; // 0: Tier* kinds
  flags: u32; // 4: zero
  capacity: u64; // 8: tokens that it holds at most; 0 = not known
  used: u64; // 16: tokens that it holds
  token_sec: f32; // 24: seconds to bring one token's KV to the GPU; 0 for the GPU itself
  reuse: f32; // 28: chance that the next block pushed out of it is wanted again; negative = not known
}

// The host's functions. (ptr, cap) names a buffer: the answer is the length needed, and the buffer is filled only if cap
// suffices. A negative answer is one of ERR_*.

// Str* kinds; the kind decides what index is
// @ts-ignore: a decorator
@external("warmpath_v1", "str") export declare function str(kind: i32, index: i32, ptr: usize, cap: u32): i32;

// leading blocks of the prompt on that row's worker, all tiers
// @ts-ignore: a decorator
@external("warmpath_v1", "prefix_match") export declare function prefix_match(row: i32): i32;

// chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
// @ts-ignore: a decorator
@external("warmpath_v1", "prefix_hash") export declare function prefix_hash(block: i32): u64;

// the module's own namespace; ErrNotFound
// @ts-ignore: a decorator
@external("warmpath_v1", "kv_get") export declare function kv_get(kptr: usize, klen: u32, ptr: usize, cap: u32): i32;

// olen 0 = must be absent; ErrConflict
// @ts-ignore: a decorator
@external("warmpath_v1", "kv_cas") export declare function kv_cas(kptr: usize, klen: u32, optr: usize, olen: u32, nptr: usize, nlen: u32, ttl_ms: i32): i32;

// i64 counter; math.MinInt64 on error
// @ts-ignore: a decorator
@external("warmpath_v1", "kv_incr") export declare function kv_incr(kptr: usize, klen: u32, delta: i64, ttl_ms: i32): i64;

// Level*; rate-limited
// @ts-ignore: a decorator
@external("warmpath_v1", "log") export declare function log(level: i32, ptr: usize, len: u32): void;

// lines below it are dropped
// @ts-ignore: a decorator
@external("warmpath_v1", "log_level") export declare function log_level(): i32;

// adds f64 value to the module's counter of that name
// @ts-ignore: a decorator
@external("warmpath_v1", "metric") export declare function metric(ptr: usize, len: u32, value_bits: u64): void;

// text for the operator about the call that is about to fail
// @ts-ignore: a decorator
@external("warmpath_v1", "error") export declare function error(ptr: usize, len: u32): void;

// a Holder: who holds the most of the prompt, of all workers of the pool,
// those that are no candidates too
// @ts-ignore: a decorator
@external("warmpath_v1", "prefix_best") export declare function prefix_best(ptr: usize, cap: u32): i32;

// a Holder: that row's worker, by the host's own history
// @ts-ignore: a decorator
@external("warmpath_v1", "prefix_worker") export declare function prefix_worker(row: i32, ptr: usize, cap: u32): i32;

// leading blocks of another chain of n hashes, as prefix_hash gave them,
// that the row's worker holds; n at most MaxChain
// @ts-ignore: a decorator
@external("warmpath_v1", "prefix_match_key") export declare function prefix_match_key(row: i32, ptr: usize, n: u32): i32;

// a Tier for each tier that the row's worker has, GPU first
// @ts-ignore: a decorator
@external("warmpath_v1", "cache_tiers") export declare function cache_tiers(row: i32, ptr: usize, cap: u32): i32;

// sets Row.Own of the worker of that Row.Key, for all instances; ErrInvalid
// for NaN and infinities, ErrNotFound for no worker that a row has shown
// @ts-ignore: a decorator
@external("warmpath_v1", "own") export declare function own(key: u64, value: f64): i32;

// that number; 0 also for no such worker
// @ts-ignore: a decorator
@external("warmpath_v1", "own_of") export declare function own_of(key: u64): f64;

// the values of up to MaxMany keys, each key a u32 length and its bytes;
// for each an i32 length and the bytes, or an Errno alone
// @ts-ignore: a decorator
@external("warmpath_v1", "kv_get_many") export declare function kv_get_many(kptr: usize, klen: u32, ptr: usize, cap: u32): i32;

// east of UTC at that time (Unix nanoseconds), in the time zone of that
// name, as Europe/Berlin; NoZone if there is none
// @ts-ignore: a decorator
@external("warmpath_v1", "zone_offset") export declare function zone_offset(ptr: usize, len: u32, now: i64): i32;

// asks for something to be done with the KV cache of the request's
// conversation once it has been answered: Cache* kinds, which say what the
// others are; ErrNotFound for no such row, ErrLimit beyond MaxWishes
// @ts-ignore: a decorator
@external("warmpath_v1", "cache") export declare function cache(what: i32, row: i32, amount: i32, ptr: usize, len: u32): i32;

// What a module exports. wp_pick is the strategy's, and wp_frame is below; write those of the others that you need, as
//
//   export function wp_tick(now: i64): void { ... }
//
//   wp_frame(max_workers: i32): usize
//     asked at start, and again when the fleet outgrows max_workers
//   wp_pick(): i64
//     reads the frame; see Pack
//   wp_configure(len: u32): i32
//     options of len bytes stand at the frame's address, see AppendOption; 0 = accepted
//   wp_maint(): void
//     called between picks every 256 calls: let the guest's runtime collect garbage
//   wp_wants(): i32
//     asked once, after wp_configure: Want* bits. Without it: all calls exported
//   wp_reasons(): u32
//     asked once, after wp_configure: names of reason codes stand at the frame's
//     address as pairs, see AppendOption; the key is the code in decimal.
//     At most MaxReasons
//   wp_tick(now: i64): void
//     about once a second, Unix nanoseconds
//   wp_on_first_token(n: u32): void
//     n Outcomes stand at the frame's address: their first bytes came
//   wp_on_complete(n: u32): void
//     n Outcomes: they ended
//   wp_on_kv_event(n: u32): void
//     n KVEvents of workers of the pool
//   wp_classify(): i64
//     reads the header alone of a request that is about to wait in the pool's queue,
//     with a pick's fuel and time; see PackClass. The greater class goes first
//   wp_filter(): i64
//     reads the frame of all workers that are up, and writes the rows that the
//     request may use to the order area; see Pack: their number stands in place of a
//     row, 0 = none; Decline leaves all; Reject turns the client away
//   wp_plan(n: u32): void
//     n Talks stand at the frame's address: conversations whose worker leaves, or to
//     move to one that has come. The guest may write their Values. They are Returns
//     at first, or 0 for one that had better have its next turn before

const MAX_WORKERS: u32 = 4096;

// Header, rows and order area.
const area: usize = memory.data(<i32>(offsetof<Header>() + MAX_WORKERS * (offsetof<Row>() + 4)), 8);
let rows: u32 = 0;

export function warmpath_abi_1_3(): void {}

export function wp_frame(max: u32): usize {
  if (max > MAX_WORKERS) unreachable();
  rows = max;
  return area;
}

// The request, and its candidates 0 to request().rows - 1.
export function request(): Header {
  return changetype<Header>(area);
}

export function worker(i: u32): Row {
  return changetype<Row>(area + offsetof<Header>() + <usize>i * offsetof<Row>());
}

// Answers.

// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code, which people see by the name that the
// export wp_reasons gives it.
export function to(worker: i32, reason: u16): u64 {
  return ((<u64>reason) << 32) | (<u64>(<u32>worker));
}

// Gives an answer another reason.
export function because(answer: u64, reason: u16): u64 {
  return (answer & ~((<u64>0xffff) << 32)) | ((<u64>reason) << 32);
}

// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
export function only(answer: u64): u64 {
  return answer | ((<u64>FLAG_ONLY) << 48);
}

// Asks the host to keep the request's session with the worker of an answer from now on.
export function bind(answer: u64): u64 {
  return answer | ((<u64>FLAG_BIND) << 48);
}

// The result of wp_classify: a class, of which the greater goes first, -100 to 100, and the share of the key beside others
// of the class, .1 to 100; 0 leaves the key's own. [[keys]] priority bounds the class: without it nobody gets above 0.
export function class_of(number: i32, share: f32): u64 {
  return ((<u64>reinterpret<u32>(share)) << 32) | (<u64>(<u32>number));
}

// The next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer says
// only. There is room for as many as wp_frame was asked for; what is more counts for nothing.
export function then(worker: u32): void {
  const h = request();
  if (h.order_len >= rows) return;
  store<u32>(area + offsetof<Header>() + <usize>rows * offsetof<Row>() + 4 * <usize>h.order_len, worker);
  h.order_len += 1;
}

// Keeps the best four workers of a request: the choice and its alternatives.
//
//   const k = ranking();
//   for (let i: u32 = 0; i < r.rows; i++) k.enter(i, r.ttft(worker(i)));
//   return because(k.choose(), REASON_COST);
export class Ranking {
  best: StaticArray<u32> = new StaticArray<u32>(5); // rows, the best first
  private costs: StaticArray<f64> = new StaticArray<f64>(5);
  n: i32 = 0;

  // Ranks worker i at a cost; the smallest is best. Enter workers by ascending index. Ties go to the fewest in flight, then
  // the fewest sent, each per unit of weight, then the index. A cost that is no number is the worst, and the
  // router's log says so.
  enter(i: u32, cost: f64): void {
    const best = this.best, costs = this.costs;
    if (this.n == 4 && cost > costs[3]) return;
    if (isNaN(cost)) {
      const said = String.UTF8.encode("a cost is no number, as 0/0 gives: its worker is ranked last");
      log(LEVEL_WARN, changetype<usize>(said), said.byteLength);
      cost = Infinity;
    }
    let at = this.n;
    for (; at > 0 && (cost < costs[at - 1] || (cost == costs[at - 1] && idler(worker(i), worker(best[at - 1])))); at--) {
      best[at] = best[at - 1];
      costs[at] = costs[at - 1];
    }
    best[at] = i;
    costs[at] = cost;
    if (this.n < 4) this.n++;
  }

  // Names the alternatives and answers with the best worker, best[0]; declines if none was entered.
  choose(): u64 {
    for (let i = 1; i < this.n; i++) then(this.best[i]);
    return to(this.n > 0 ? this.best[0] : DECLINE, 0);
  }
}

const ranked = new Ranking();

// An empty ranking, the same object in each pick, which makes no garbage. new Ranking() is a second one.
export function ranking(): Ranking {
  ranked.n = 0;
  return ranked;
}

function idler(p: Row, q: Row): bool {
  const a = p.per_weight(<f64>p.in_flight), b = q.per_weight(<f64>q.in_flight);
  return a != b ? a < b : p.per_weight(<f64>p.sent) < q.per_weight(<f64>q.sent);
}

// Chance and hashes.

let seed: u64 = 0, drawn: u64 = 0;

function mix(x: u64): u64 {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The number of a text that the request's model, session, tenant and caller are of theirs: FNV-1a, the same over restarts
// and routers. It is 0 for the empty text alone.
export function hash(text: string): u64 {
  const b = Uint8Array.wrap(String.UTF8.encode(text));
  let h: u64 = 0xcbf29ce484222325;
  for (let i = 0; i < b.length; i++) h = (h ^ b[i]) * 0x100000001b3;
  return b.length == 0 ? 0 : max<u64>(1, h);
}

// The rank of a worker for what has the hash, as hash or session, from 0 to 1: the worker of the greatest is its place
// (rendezvous hashing). All routers agree on it. If a worker leaves, only what it had moves; a worker of twice the weight is
// the place of twice as many.
export function place(hash: u64, w: Row): f64 {
  const u = <f64>(mix(hash ^ w.key) >> 11) / 9007199254740992.0;
  return w.weight > 0 && w.weight != 1 ? Math.pow(u, 1 / <f64>w.weight) : u;
}

// Texts of the request, each empty if there is none, or one above 1,024 bytes.

const asked: usize = memory.data(1024);
const turned_away: usize = memory.data(<i32>MAX_TEXT); // the text of a rejection

function ask(kind: i32, index: i32): string {
  const n = str(kind, index, asked, 1024);
  return n > 0 && n <= 1024 ? String.UTF8.decodeUnsafe(asked, n) : "";
}

export function session(): string {
  return ask(STR_SESSION, 0);
}

export function model(): string {
  return ask(STR_MODEL, 0);
}

export function tenant(): string {
  return ask(STR_TENANT, 0);
}

export function caller(): string {
  return ask(STR_CALLER, 0);
}

export function worker_id(i: u32): string {
  return ask(STR_WORKER, i);
}

// The request's header of that name, if the strategy's allow list has "headers:" and its name in lower case.
export function header(name: string): string {
  const b = String.UTF8.encode(name);
  memory.copy(asked, changetype<usize>(b), min(b.byteLength, 1024));
  return ask(STR_HEADER, b.byteLength);
}

let label_names: string[] = [], label_epoch: u32 = 0, label_read = false;

// The names of the label bits. They change only with the configuration, so that a pick asks for them seldom.
function label_list(h: Header): string[] {
  if (label_read && label_epoch == h.labels_epoch && label_names.length == <i32>min<u32>(h.labels, 64)) return label_names;
  label_names = [];
  for (let bit = 0; bit < <i32>min<u32>(h.labels, 64); bit++) label_names.push(ask(STR_LABEL, bit));
  label_epoch = h.labels_epoch;
  label_read = true;
  return label_names;
}

// Records of the calls beside the picks, valid during the call.

// The n records of wp_on_first_token(n) or wp_on_complete(n).
export function outcomes(n: u32): Outcome[] {
  const all: Outcome[] = [];
  for (let i: usize = 0; i < n; i++) all.push(changetype<Outcome>(area + i * offsetof<Outcome>()));
  return all;
}

// The n records of wp_on_kv_event(n).
export function events(n: u32): KVEvent[] {
  const all: KVEvent[] = [];
  for (let i: usize = 0; i < n; i++) all.push(changetype<KVEvent>(area + i * offsetof<KVEvent>()));
  return all;
}

// The n records of wp_plan(n). Write the value of each.
export function talks(n: u32): Talk[] {
  const all: Talk[] = [];
  for (let i: usize = 0; i < n; i++) all.push(changetype<Talk>(area + i * offsetof<Talk>()));
  return all;
}

// Keeps the request to the workers that then has named, in the export wp_filter; nobody else gets it:
//
//   export function wp_filter(): u64 {
//     const r = request(), own = r.labeled("for", caller());
//     for (let i: u32 = 0; i < r.rows; i++) if ((worker(i).labels & own) != 0) then(i);
//     return kept(); // or to(DECLINE, 0) if it has no opinion, or r.reject(...)
//   }
export function kept(): u64 {
  return to(request().order_len, 0);
}

// Adds a value, not below zero, to the strategy's own counter of that name.
export function count(name: string, value: f64): void {
  const b = String.UTF8.encode(name);
  metric(changetype<usize>(b), b.byteLength, reinterpret<u64>(value));
}

// Options and names of reasons.

// The options of the configuration, in the export wp_configure(len), asked for one by one:
//
//   const o = new Options(len);
//   each = o.number("each", 0.01);
//   return o.done();
export class Options {
  private all: string[];
  private known: string[] = [];
  private wrong: string = "";

  constructor(len: u32) {
    this.all = texts(len);
  }

  // The option as a number.
  number(key: string, absent: f64): f64 {
    const at = this.find(key);
    const n = at < 0 ? absent : decimal(this.all[at]);
    if (isNaN(n)) this.wrong = key;
    return n;
  }

  // The option's text.
  text(key: string, absent: string): string {
    const at = this.find(key);
    return at < 0 ? absent : this.all[at];
  }

  private find(key: string): i32 {
    this.known.push(key);
    for (let i = 0; i < this.all.length; i += 2) {
      if (this.all[i] == key) return i + 1;
    }
    return -1;
  }

  // Refuses the options if one has a wrong value, or was not asked for. Return what it returns.
  done(): i32 {
    if (this.wrong != "") return refuse(this.wrong);
    for (let i = 0; i < this.all.length; i += 2) {
      if (!this.known.includes(this.all[i])) return refuse(this.all[i]);
    }
    return 0;
  }
}

// The options as a list: each key and, behind it, its value.
export function texts(len: u32): string[] {
  const all: string[] = [];
  for (let at: u32 = 0; at + 4 <= len; ) {
    const n = load<u32>(area + at);
    all.push(String.UTF8.decodeUnsafe(area + at + 4, n));
    at += 4 + n;
  }
  return all;
}

// The text's number, as 12, -.05 or 1e-3; NaN if it is none. parseFloat alone takes 5ms as 5.
export function decimal(text: string): f64 {
  let digits = 0, points = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 48 && c <= 57) digits++;
    else if (c == 46 && points++ == 0) continue;
    else if ((c == 43 || c == 45) && (i == 0 || (text.charCodeAt(i - 1) | 32) == 101)) continue;
    else if ((c | 32) == 101 && digits > 0 && points < 2) {
      digits = 0;
      points = 2;
    } else return NaN;
  }
  const n = digits > 0 ? parseFloat(text) : NaN;
  return isFinite(n) ? n : NaN;
}

// Tells the operator that an option is unknown or has a wrong value. Return what it returns.
export function refuse(key: string): i32 {
  const text = String.UTF8.encode("unknown option, or wrong value: " + key);
  error(changetype<usize>(text), text.byteLength);
  return ERR_INVALID;
}

// Writes names of reasons where the host reads them, each behind its code, in the export wp_reasons, which returns what it
// returns: reasons(["10", "least cost"]).
export function reasons(texts: string[]): i32 {
  let at: usize = 0;
  for (let i = 0; i < texts.length; i++) {
    const text = String.UTF8.encode(texts[i]);
    store<u32>(area + at, text.byteLength);
    memory.copy(area + at + 4, changetype<usize>(text), text.byteLength);
    at += 4 + text.byteLength;
  }
  return <i32>at;
}

// Does what reasons does with names for the codes from REASON_OWN on: named(["learnt", "by chance"]).
export function named(own: string[]): i32 {
  const all: string[] = [];
  for (let i = 0; i < own.length; i++) {
    all.push((<i32>REASON_OWN + i).toString());
    all.push(own[i]);
  }
  return reasons(all);
}
