// What a strategy and its host agree on: warmpath's ABI 1.2, written from warmpath's sdk/abi: constants, records, imports
// and exports. Below them is what connects a strategy to it. A later version of warmpath still runs what is built with it.
#ifndef WARMPATH_H
#define WARMPATH_H

#if defined(__clang_major__) && __clang_major__ < 11
#error "warmpath.h needs clang 11 or later, for a module's imports and exports"
#endif

#include <stdint.h>

// Version is major<<16 | minor of this package. A host refuses another major version. What a minor version may change
// stands in the package's documentation.
enum { WP_VERSION = 65538 };

// OrderSize is the bytes of an entry of the order area.
enum { WP_ORDER_SIZE = 4 };

// Values of wp_pick's low half that are no row.
enum { WP_DECLINE = -1 }; // the host's fallback answers
enum { WP_REJECT = -2 }; // the client is turned away: see Header.RejectStatus
enum { WP_HOLD = -3 }; // the request waits for a better worker: see Header.HoldMillis; since 1.2

// Flags of a decision.
enum { WP_FLAG_BIND = 1 }; // bind the request's session to the chosen worker
enum { WP_FLAG_ONLY = 2 }; // no worker but the chosen one and those in the order area may get the request; since 1.2

// HeaderSize is the bytes of a Header.
enum { WP_HEADER_SIZE = 232 };

// Bits of Header.Flags.
enum { WP_HEADER_STREAM = 1 }; // the client asked for a stream
enum { WP_HEADER_EVENTS = 2 }; // the matches of all rows come from the workers' KV events, not from routed history
enum { WP_HEADER_TOKENS = 4 }; // the prompt's ids are known, and one block of the rows is one token; since 1.1
enum { WP_HEADER_ANSWER = 8 }; // for the worker that answers; another one may compute the prompt; since 1.2
enum { WP_HEADER_PREFILL = 16 }; // for the worker that computes the prompt; another one answers; since 1.2

// Kinds of Header.Endpoint. A request through another door, as SageMaker's, has the kind that its body has.
enum { WP_ENDPOINT_OTHER = 0 };
enum { WP_ENDPOINT_COMPLETIONS = 1 }; // /v1/completions
enum { WP_ENDPOINT_CHAT = 2 }; // /v1/chat/completions
enum { WP_ENDPOINT_RESPONSES = 3 }; // /v1/responses
enum { WP_ENDPOINT_MESSAGES = 4 }; // /v1/messages
enum { WP_ENDPOINT_EMBEDDINGS = 5 }; // /v1/embeddings, /pooling
enum { WP_ENDPOINT_SCORE = 6 }; // /score, /rerank, /classify
enum { WP_ENDPOINT_TOKENIZE = 7 }; // /tokenize, /detokenize, /v1/messages/count_tokens

// MaxText bounds the text of a rejection and the name of a reason, in bytes.
enum { WP_MAX_TEXT = 256 };

// RowSize is the bytes of a Row.
enum { WP_ROW_SIZE = 176 };

// Bits of Row.State. Those of adapters count where the request's model is one. From RowLive on since 1.1. A worker
// without a role has neither of the last two: it computes prompts and answers.
enum { WP_ROW_SLOW_START = 1 }; // back a short while ago: send little
enum { WP_ROW_STALE = 2 }; // metrics are older than three scrape intervals
enum { WP_ROW_LIVE = 4 }; // GPU, L1 and L2 come from the worker's own KV events, not from routed history
enum { WP_ROW_ADAPTER = 8 }; // the adapter runs there
enum { WP_ROW_ADAPTER_WAITING = 16 }; // a request waits there for the adapter to be loaded
enum { WP_ROW_ADAPTERS_FULL = 32 }; // as many other adapters run there as it takes
enum { WP_ROW_PREFILL = 64 }; // it only computes prompts, whose answers others write; since 1.2
enum { WP_ROW_DECODE = 128 }; // it computes no prompts for others; since 1.2
enum { WP_ROW_JOINS = 256 }; // it came while others had requests, and has not caught up yet; since 1.2

// The bits of Row.State from RowLoadShift on are the milliseconds that the request's adapter costs there before it
// runs: its load, and its place if none is free. 0 where it runs, and where the model is no adapter. 0 before 1.2.
enum { WP_ROW_LOAD_SHIFT = 16 };
enum { WP_ROW_LOAD_MAX = 65535 };

// Brim is the part of a worker's KV cache that requests may hold. Past it a request waits until others end, or the
// engine preempts one, whose whole context is then computed again. An engine is full before its last token is taken: it
// gives out blocks, and answers grow.
#define WP_BRIM 0.9

// Sizes of the records in bytes.
enum { WP_OUTCOME_SIZE = 96 };
enum { WP_KVEVENT_SIZE = 48 };
enum { WP_HOLDER_SIZE = 24 };
enum { WP_TIER_SIZE = 32 };

// Kinds of KVEvent.Kind.
enum { WP_EVENT_STORED = 1 }; // the block is in the tier now
enum { WP_EVENT_REMOVED = 2 }; // it is no longer
enum { WP_EVENT_CLEARED = 3 }; // the worker holds nothing any more

// Kinds of tiers.
enum { WP_TIER_GPU = 0 }; // the worker's GPU
enum { WP_TIER_L1 = 1 }; // the CPU memory of the worker's node
enum { WP_TIER_L2 = 2 }; // shared among workers

// Bits of wp_wants: what costs the host something and is therefore done only for modules that ask.
enum { WP_WANT_COST = 1 }; // fill Row.Cost
enum { WP_WANT_TICK = 2 }; // call wp_tick
enum { WP_WANT_FIRST_TOKEN = 4 }; // call wp_on_first_token
enum { WP_WANT_COMPLETE = 8 }; // call wp_on_complete
enum { WP_WANT_KVEVENTS = 16 }; // call wp_on_kv_event
enum { WP_WANT_HELD = 32 }; // fill GPU, L1 and L2 by what the workers report: needs the prompt's ids
enum { WP_WANT_CLASSIFY = 64 }; // call wp_classify; since 1.2
enum { WP_WANT_PAIR = 128 }; // add rows of prefillers, of which PairRow may name one; since 1.2
enum { WP_WANT_ALL = 255 }; // WantAll are the bits that this version knows. A module that sets another is refused.

// WantNotices are the bits of the calls off the request path.
enum { WP_WANT_NOTICES = 30 };

// MaxReasons bounds the reasons that wp_reasons names. A name has at most MaxText bytes.
enum { WP_MAX_REASONS = 256 };

// MaxMany bounds the keys of one kv_get_many.
enum { WP_MAX_MANY = 4096 };

// NoZone is zone_offset's answer to a name of no time zone.
enum { WP_NO_ZONE = -2147483648 };

// MaxChain bounds the hashes that prefix_match_key takes: 2 MiB of text.
enum { WP_MAX_CHAIN = 16384 };

// Errno values, as negative results of imports.
enum { WP_ERR_NOT_FOUND = -1 }; // no such key, row or string
enum { WP_ERR_CONFLICT = -2 }; // the value is not the one expected
enum { WP_ERR_INVALID = -3 }; // a pointer, length or kind is out of range
enum { WP_ERR_FORBIDDEN = -4 }; // the configuration of the strategy does not allow it; see allow
enum { WP_ERR_LIMIT = -5 }; // the module's quota is used up

// Kinds of str.
enum { WP_STR_SESSION = 0 }; // the session key
enum { WP_STR_MODEL = 1 }; // the model's name
enum { WP_STR_WORKER = 2 }; // the worker id of row index
enum { WP_STR_TENANT = 3 }; // the cache salt
enum { WP_STR_CALLER = 4 }; // the caller's name; since 1.1
enum { WP_STR_LABEL = 5 }; // the label of bit index, as tier=batch; since 1.1
enum { WP_STR_HEADER = 6 }; // a header of the request, whose name of index bytes stands at ptr; since 1.1

// Levels of log.
enum { WP_LEVEL_DEBUG = 0 };
enum { WP_LEVEL_INFO = 1 };
enum { WP_LEVEL_WARN = 2 };
enum { WP_LEVEL_ERROR = 3 };

// MaxOptions bounds the encoded options, in bytes.
enum { WP_MAX_OPTIONS = 65536 };

// The shared reasons.
enum { WP_REASON_NONE = 0 };
enum { WP_REASON_PREFIX = 1 }; // it holds the longest prefix of the prompt
enum { WP_REASON_LOAD = 2 }; // another holds a longer prefix, and using it would cost more than it saves
enum { WP_REASON_COLD = 3 }; // no worker holds any of the prompt: the least cost
enum { WP_REASON_PREDICTED = 4 }; // there are no KV events: by the history of what was routed
enum { WP_REASON_SESSION = 5 }; // the session is bound to it
enum { WP_REASON_HASH = 6 }; // a new session, placed by hashing
enum { WP_REASON_SPILL = 7 }; // a new session, hashed past a worker that has too much in flight
enum { WP_REASON_LEAST = 8 }; // the fewest in flight
enum { WP_REASON_TURN = 9 }; // its turn
enum { WP_REASON_COST = 10 }; // the least cost, of whatever the strategy reckons with
enum { WP_REASON_OWN = 256 }; // ReasonOwn is the first code that is free for a strategy's own reasons.

// Header describes one request. Offsets are in the comments; a test compares them with the compiler's. A module made
// for 1.0 gets the first 128 bytes, one for 1.1 the first 192.
struct wp_header {
  uint32_t version; // 0: of the layout: major<<16 | minor
  uint32_t header_bytes; // 4: size of the header
  uint32_t row_bytes; // 8: distance of two rows
  uint32_t rows; // 12: rows that follow, at least 1
  uint64_t seq; // 16: number of the request among its pool's for the same model, from 0, exact over all instances
  int64_t now; // 24: wall clock, Unix nanoseconds, as of the request's arrival
  uint64_t random; // 32: fresh from the host for each pick
  uint32_t prompt_tokens; // 40: L: prompt length in tokens, estimated when the prompt is text; 0 = no prompt
  uint32_t prompt_blocks; // 44: blocks of the prompt in the unit of the Row's match counts
  float block_tokens; // 48: tokens in a block, by the current estimate; 0 if there is no prompt
  uint32_t max_tokens; // 52: the request's limit on generated tokens; 0 = not given
  int32_t priority; // 56: the body's priority, lower first; default 0
  uint32_t flags; // 60: HeaderStream and the other Header bits
  uint64_t model; // 64: hash of the model's name; 0 = none named
  uint64_t session; // 72: hash of the session key; 0 = none
  uint64_t tenant; // 80: hash of the tenant (cache salt); 0 = none
  int32_t bound; // 88: row of the worker the session is bound to; -1 = none, or it is not a candidate
  int32_t best_row; // 92: row with the most matched blocks; -1 = no match
  uint32_t best_match; // 96: blocks matched there
  float lambda; // 100: requests per second and worker: over 30 s, or half of the newest rate if that is more
  float c1; // 104: seconds to prefill one token on a worker of slowness 1
  float c2; // 108: further seconds a token for each token before it (attention)
  float inv_bwl1; // 112: seconds to bring one token's KV from CPU memory; 0 = no such tier
  float inv_bwl2; // 116: seconds to bring one token's KV from the shared tier; 0 = no such tier
  uint32_t order_len; // 120: written by the guest: alternatives in the order area; the host clears it
  uint32_t endpoint; // 124: Endpoint* kinds; since 1.1
  uint64_t caller; // 128: hash of the caller's name (the configured name of the key it used); 0 = none
  int64_t deadline; // 136: Unix nanoseconds after which nobody waits for the answer any more; 0 = none
  uint32_t labels; // 144: names of label bits there are; StrLabel asks for them
  uint32_t labels_epoch; // 148: another number whenever these names may be others
  uint32_t reject_status; // 152: HTTP status, 400 to 599; another number counts as 429
  uint32_t retry_after; // 156: seconds that the client is asked to wait; 0 = the host's own estimate
  uint32_t reject_text; // 160: address of the text that the client gets, UTF-8; what is beyond MaxText bytes is cut
  uint32_t reject_len; // 164: its length; 0 = the host's own words
  uint64_t parent; // 168: hash of the session that began this one, as a subagent's; 0 = none
  uint32_t turn; // 176: number of the request in its session, from 1; 0 = not known
  float since_last; // 180: seconds since the request before in its session began; 0 = it is the first, or not known
  uint32_t expected_output; // 184: tokens that the answer is expected to have, by those before; 0 = not known
  uint32_t expected_turns; // 188: requests that the session is expected to send after this one; 0 = none, or not known
  int32_t last; // 192: row of the worker that the session's request before went to; -1 = none, or no candidate
  int32_t parent_row; // 196: row of the worker that the parent's last request went to; -1 = none, or no candidate
  uint32_t configured; // 200: workers of the pool that the client's key may use, with a row or not
  uint32_t up; // 204: of them those that answer their health checks
  uint32_t queue_depth; // 208: requests that wait in the pool's queue; 0 also without one
  uint32_t flows_waiting; // 212: flows of them: keys, and agents of a key
  float waited; // 216: seconds that the request has waited there
  uint32_t hold_millis; // 220: written by the guest with Hold: how long it may wait in all; the host clears it
  uint32_t prefillers; // 224: last rows, which only compute prompts and cannot be chosen; 0 without WantPair
  int32_t pair_row; // 228: written by the guest with WantPair: row that computes the prompt; the host writes -1, none
};
_Static_assert(sizeof(struct wp_header) == 232, "the record's layout");

// Row describes one candidate worker: every row is up and lists the model. Learning is the host's; these are its
// results as of the request's arrival. A module made for 1.0 gets the first 128 bytes, one for 1.1 the first 160.
struct wp_row {
  uint32_t worker; // 0: the worker's slot in its pool, stable while the worker is configured
  uint32_t state; // 4: RowSlowStart and the other Row bits
  uint32_t predicted; // 8: leading blocks of the prompt believed held, from routed history
  uint32_t gpu; // 12: leading blocks held on the GPU (the best view the host has)
  uint32_t l1; // 16: further contiguous blocks in the worker's CPU tier
  uint32_t l2; // 20: further contiguous blocks in the shared tier
  uint32_t running; // 24: requests running, as the worker last reported
  uint32_t waiting; // 28: requests waiting, as the worker last reported
  uint32_t in_flight; // 32: requests sent there and not yet ended
  uint32_t pending_tokens; // 36: prompt tokens sent there without a first byte yet
  float kvusage; // 40: 0..1, as the worker last reported
  float ttft; // 44: seconds, running mean; 0 = none seen
  float tpot; // 48: seconds a generated token, running mean; 0 = none seen
  float metrics_age; // 52: seconds since the worker's metrics were read; negative = never
  float weight; // 56: configured, default 1
  uint32_t sessions; // 60: sessions that live there, about; 0 if the request opens none
  uint64_t sent; // 64: requests ever sent there
  double wait; // 72: W: seconds of prefill queued there
  double slow; // 80: m: slowness, seconds per estimated second of prefill
  double load; // 88: rho: prefill seconds sent per second
  float free_gpu; // 96: tokens of free KV on the GPU
  float free_l1; // 100: tokens free in the CPU tier
  float reuse_gpu; // 104: R0: chance that the next block pushed out of the GPU is wanted again
  float reuse_l1; // 108: R1: the same for the CPU tier
  uint64_t key; // 112: hash of the worker's id, the same over restarts and routers
  float lately; // 120: requests sent there lately, each counted e^(-age/30 s); 0 in 1.0
  float pending; // 124: seconds of prefill sent there without a first byte, on a worker of slowness 1; 0 in 1.0
  double cost; // 128: the host's own score in seconds, the smallest is best, never negative; 0 without WantCost
  uint64_t labels; // 136: a bit for each label of the pool that the worker has; StrLabel names them
  uint32_t flight_tokens; // 144: prompt tokens of the requests in flight there
  uint32_t kvtokens; // 148: tokens that its GPU's KV cache holds; 0 = not known
  float price; // 152: the operator's cost of the worker, in units of the operator's own; 0 = not given
  uint32_t rank; // 156: data-parallel rank that the row stands for, of those behind one address; 0 also without
  uint32_t held_tokens; // 160: tokens of KV held by requests in flight; what they share counts once if room is short
  uint32_t shared_tokens; // 164: leading tokens of the prompt that are among those already
  double own; // 168: the strategy's own number for the worker, as own has set it; 0 at first
};
_Static_assert(sizeof(struct wp_row) == 176, "the record's layout");

// Outcome is what wp_on_first_token and wp_on_complete learn of a request.
struct wp_outcome {
  uint64_t seq; // 0: its Header.Seq
  int64_t now; // 8: Unix nanoseconds of what happened
  uint64_t model; // 16: as in its Header
  uint64_t session; // 24:
  uint64_t tenant; // 32:
  uint64_t caller; // 40:
  uint64_t key; // 48: Row.Key of the worker that answered; 0 = none did
  uint32_t worker; // 56: its Row.Worker
  uint32_t status; // 60: HTTP status that the client got; 0 = the client went before it got one
  uint32_t prompt_tokens; // 64: the worker's word if it gave one, else the estimate
  int32_t cached_tokens; // 68: of these found in the worker's cache, by its own count; -1 = not given
  int32_t output_tokens; // 72: generated, by the worker's count; -1 = not given, or not ended yet
  uint32_t reason; // 76: the strategy's own reason code; 0 also = another worker failed, and the host chose this one
  float ttft; // 80: seconds from dispatch to the first byte; negative = there was none
  float seconds; // 84: from arrival until now
  uint32_t believed; // 88: tokens that were believed cached there when it was chosen
  uint32_t attempts; // 92: workers that it was sent to
};
_Static_assert(sizeof(struct wp_outcome) == 96, "the record's layout");

// KVEvent is one block's change in a worker's cache, as wp_on_kv_event learns it.
struct wp_kvevent {
  uint64_t key; // 0: Row.Key of the worker
  uint64_t hash; // 8: of the block, the engine's own: it is no hash of prefix_hash; 0 for EventCleared
  uint64_t parent; // 16: of the block before it; 0 = none, or not given
  int64_t now; // 24: Unix nanoseconds at which the host got it
  uint32_t worker; // 32: Row.Worker
  uint32_t kind; // 36: Event* kinds
  uint32_t tier; // 40: Tier* kinds
  uint32_t tokens; // 44: in the block
};
_Static_assert(sizeof(struct wp_kvevent) == 48, "the record's layout");

// Holder is what prefix_best and prefix_worker answer: what the host's index believes of one worker.
struct wp_holder {
  uint64_t key; // 0: Row.Key
  uint32_t matched; // 8: leading blocks of the prompt that it holds
  int32_t row; // 12: its row; -1 = no candidate for this request
  uint32_t blocks; // 16: blocks that it holds in all
  float tail_secs; // 20: seconds since the block that it will push out next was last used; negative = not known
};
_Static_assert(sizeof(struct wp_holder) == 24, "the record's layout");

// Tier is what cache_tiers answers of one tier of a worker.
struct wp_tier {
  uint32_t kind; // 0: Tier* kinds
  uint32_t flags; // 4: zero
  uint64_t capacity; // 8: tokens that it holds at most; 0 = not known
  uint64_t used; // 16: tokens that it holds
  float token_sec; // 24: seconds to bring one token's KV to the GPU; 0 for the GPU itself
  float reuse; // 28: chance that the next block pushed out of it is wanted again; negative = not known
};
_Static_assert(sizeof(struct wp_tier) == 32, "the record's layout");

#ifdef __wasm__
#define WP_EXPORT(name) __attribute__((export_name(name)))
#define WP_IMPORT(name) __attribute__((import_module("warmpath_v1"), import_name(name)))
#else // the native test: no export has a name, an import is a function that the test has
#define WP_EXPORT(name)
#define WP_IMPORT(name)
#endif

// The host's functions. (ptr, cap) names a buffer: the answer is the length needed, and the buffer is filled only if cap
// suffices. A negative answer is one of WP_ERR_*.

// Str* kinds; the kind decides what index is
WP_IMPORT("str") int32_t wp_str(int32_t kind, int32_t index, void * ptr, uint32_t cap);

// leading blocks of the prompt on that row's worker, all tiers
WP_IMPORT("prefix_match") int32_t wp_prefix_match(int32_t row);

// chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
WP_IMPORT("prefix_hash") uint64_t wp_prefix_hash(int32_t block);

// the module's own namespace; ErrNotFound
WP_IMPORT("kv_get") int32_t wp_kv_get(const void * kptr, uint32_t klen, void * ptr, uint32_t cap);

// olen 0 = must be absent; ErrConflict
WP_IMPORT("kv_cas") int32_t wp_kv_cas(const void * kptr, uint32_t klen, const void * optr, uint32_t olen, const void * nptr, uint32_t nlen, int32_t ttl_ms);

// i64 counter; math.MinInt64 on error
WP_IMPORT("kv_incr") int64_t wp_kv_incr(const void * kptr, uint32_t klen, int64_t delta, int32_t ttl_ms);

// Level*; rate-limited
WP_IMPORT("log") void wp_log(int32_t level, const void * ptr, uint32_t len);

// lines below it are dropped
WP_IMPORT("log_level") int32_t wp_log_level(void);

// adds f64 value to the module's counter of that name
WP_IMPORT("metric") void wp_metric(const void * ptr, uint32_t len, uint64_t value_bits);

// text for the operator about the call that is about to fail
WP_IMPORT("error") void wp_error(const void * ptr, uint32_t len);

// a Holder: who holds the most of the prompt, of all workers of the pool,
// those that are no candidates too
WP_IMPORT("prefix_best") int32_t wp_prefix_best(void * ptr, uint32_t cap);

// a Holder: that row's worker, by the host's own history
WP_IMPORT("prefix_worker") int32_t wp_prefix_worker(int32_t row, void * ptr, uint32_t cap);

// leading blocks of another chain of n hashes, as prefix_hash gave them,
// that the row's worker holds; n at most MaxChain
WP_IMPORT("prefix_match_key") int32_t wp_prefix_match_key(int32_t row, const void * ptr, uint32_t n);

// a Tier for each tier that the row's worker has, GPU first
WP_IMPORT("cache_tiers") int32_t wp_cache_tiers(int32_t row, void * ptr, uint32_t cap);

// sets Row.Own of the worker of that Row.Key, for all instances; ErrInvalid
// for NaN and infinities, ErrNotFound for no worker that a row has shown
WP_IMPORT("own") int32_t wp_own(uint64_t key, double value);

// that number; 0 also for no such worker
WP_IMPORT("own_of") double wp_own_of(uint64_t key);

// the values of up to MaxMany keys, each key a u32 length and its bytes;
// for each an i32 length and the bytes, or an Errno alone
WP_IMPORT("kv_get_many") int32_t wp_kv_get_many(const void * kptr, uint32_t klen, void * ptr, uint32_t cap);

// east of UTC at that time (Unix nanoseconds), in the time zone of that
// name, as Europe/Berlin; NoZone if there is none
WP_IMPORT("zone_offset") int32_t wp_zone_offset(const void * ptr, uint32_t len, int64_t now);

// What a module exports. wp_frame and wp_pick are below; write those of the others that you need, as
//
//   WP_EXPORT("wp_tick") void tick(int64_t now) { ... }
//
//   const void * wp_frame(int32_t max_workers)
//     asked at start, and again when the fleet outgrows max_workers
//   int64_t wp_pick(void)
//     reads the frame; see Pack
//   int32_t wp_configure(uint32_t len)
//     options of len bytes stand at the frame's address, see AppendOption; 0 = accepted
//   void wp_maint(void)
//     called between picks every 256 calls: let the guest's runtime collect garbage
//   int32_t wp_wants(void)
//     asked once, after wp_configure: Want* bits. Without it: all calls exported
//   uint32_t wp_reasons(void)
//     asked once, after wp_configure: names of reason codes stand at the frame's
//     address as pairs, see AppendOption; the key is the code in decimal.
//     At most MaxReasons
//   void wp_tick(int64_t now)
//     about once a second, Unix nanoseconds
//   void wp_on_first_token(uint32_t n)
//     n Outcomes stand at the frame's address: their first bytes came
//   void wp_on_complete(uint32_t n)
//     n Outcomes: they ended
//   void wp_on_kv_event(uint32_t n)
//     n KVEvents of workers of the pool
//   int64_t wp_classify(void)
//     reads the header alone of a request that is about to wait in the pool's queue,
//     with a pick's fuel and time; see PackClass. The greater class goes first

enum { WP_MAX_WORKERS = 4096 };

// The strategy: it answers with wp_to. workers has request->rows entries, at least one.
uint64_t route(struct wp_header *request, const struct wp_row *workers);

// wp_to is the answer: a worker's index, WP_DECLINE, WP_REJECT or WP_HOLD, and a reason: 0, or a code, which people see by
// the name that the export wp_reasons gives it.
static inline uint64_t wp_to(int32_t worker, uint16_t reason) { return (uint64_t)reason << 32 | (uint32_t)worker; }

// wp_only keeps the request to the worker of an answer and those of wp_then: nobody else gets it, whatever fails.
static inline uint64_t wp_only(uint64_t answer) { return answer | (uint64_t)WP_FLAG_ONLY << 48; }

static struct {
  struct wp_header header;
  struct wp_row rows[WP_MAX_WORKERS];
  uint32_t order[WP_MAX_WORKERS];
} wp_area;

static uint32_t wp_rows = WP_MAX_WORKERS;

// wp_then names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the
// answer says only.
static inline void wp_then(uint32_t worker) {
  uint32_t *order = (uint32_t *)&wp_area.rows[wp_rows];
  order[wp_area.header.order_len++] = worker;
}

struct wp_text {
  const char *at;
  uint32_t len;
};

// wp_is compares a text with one in C.
static inline int wp_is(struct wp_text t, const char *s) {
  uint32_t i = 0;
  while (i < t.len && s[i] != 0 && s[i] == t.at[i])
    i++;
  return i == t.len && s[i] == 0;
}

// wp_decimal is the text's number, as 12 or -.05; NaN if it is none.
static inline double wp_decimal(struct wp_text t) {
  double n = 0, unit = 1;
  uint32_t i = 0, digits = 0, point = 0;
  for (i = t.len > 0 && t.at[0] == '-'; i < t.len; i++) {
    if (t.at[i] == '.' && !point) {
      point = 1;
      continue;
    }
    if (t.at[i] < '0' || t.at[i] > '9')
      return __builtin_nan("");
    n = n * 10 + (t.at[i] - '0');
    unit = point ? unit * 10 : 1;
    digits++;
  }
  return digits == 0 ? __builtin_nan("") : t.at[0] == '-' ? -n / unit : n / unit;
}

// wp_options are the strategy's options of the configuration, one after the other:
//
//   WP_EXPORT("wp_configure") int32_t configure(uint32_t len) {
//     for (struct wp_options o = wp_options(len); wp_option(&o);) {
//       each = wp_decimal(o.value);
//       if (!wp_is(o.key, "each") || each != each)
//         return wp_refuse(&o);
//     }
//     return 0;
//   }
struct wp_options {
  const uint8_t *at;
  uint32_t left;
  struct wp_text key, value;
};

static inline struct wp_options wp_options(uint32_t len) {
  struct wp_options o = {(const uint8_t *)&wp_area, len, {0, 0}, {0, 0}};
  return o;
}

static inline int wp_cut(struct wp_options *o, struct wp_text *t) {
  if (o->left < 4)
    return 0;
  t->len = o->at[0] | o->at[1] << 8 | o->at[2] << 16 | (uint32_t)o->at[3] << 24;
  if (t->len > o->left - 4)
    return 0;
  t->at = (const char *)o->at + 4;
  o->at += 4 + t->len;
  o->left -= 4 + t->len;
  return 1;
}

// wp_option takes the next option; 0 = there is none.
static inline int wp_option(struct wp_options *o) { return wp_cut(o, &o->key) && wp_cut(o, &o->value); }

// wp_refuse tells the operator that an option is unknown or has a wrong value. Return what it returns.
static inline int32_t wp_refuse(const struct wp_options *o) {
  static const char words[] = "unknown option, or wrong value: ";
  static char text[160];
  uint32_t n = 0;
  for (; words[n] != 0; n++)
    text[n] = words[n];
  for (uint32_t i = 0; i < o->key.len && n < sizeof text; i++)
    text[n++] = o->key.at[i];
  wp_error(text, n);
  return WP_ERR_INVALID;
}

// wp_reason writes the name of a reason's code, in the export wp_reasons. It returns the bytes so far, which the export
// returns:
//
//   WP_EXPORT("wp_reasons") uint32_t reasons(void) { return wp_reason(0, WP_REASON_COST, "least cost"); }
static inline uint32_t wp_reason(uint32_t at, uint16_t code, const char *name) {
  uint8_t *b = (uint8_t *)&wp_area + at, digits[5];
  uint32_t n = 0, len = 0;
  do
    digits[n++] = '0' + code % 10;
  while ((code /= 10) > 0);
  while (name[len] != 0)
    len++;
  uint32_t sizes[2] = {n, len};
  for (int i = 0; i < 8; i++)
    b[i < 4 ? i : i + n] = sizes[i / 4] >> 8 * (i % 4);
  for (uint32_t i = 0; i < n; i++)
    b[4 + i] = digits[n - 1 - i];
  for (uint32_t i = 0; i < len; i++)
    b[8 + n + i] = name[i];
  return at + 8 + n + len;
}

#ifdef __wasm__

WP_EXPORT("warmpath_abi_1_2") void wp_marker(void) {}

WP_EXPORT("wp_frame") void *wp_frame(uint32_t max_workers) {
  if (max_workers > WP_MAX_WORKERS)
    __builtin_trap();
  wp_rows = max_workers;
  return &wp_area;
}

WP_EXPORT("wp_pick") uint64_t wp_pick(void) {
  if (wp_area.header.rows == 0 || wp_area.header.rows > wp_rows)
    return wp_to(WP_DECLINE, 0);
  return route(&wp_area.header, wp_area.rows);
}

#endif
#endif
