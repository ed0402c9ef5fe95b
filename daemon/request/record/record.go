package record

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/jsonline"
)

// Record is what was decided on a request, why, and what came of it. Headers, the access log, metrics and pages read
// it. Frame is enough to make the decision again. A field that is not known is zero.
type Record struct {
	ID       string `json:"id"`
	Endpoint string `json:"endpoint,omitempty"` // the kind of body, as chat
	Pool     string `json:"pool"`
	Strategy string `json:"strategy"`
	Module   string `json:"module_sha256,omitempty"`
	Model    string `json:"model"`             // that served it, or was to
	Session  string `json:"session,omitempty"` // the kind of the session that it belongs to
	Trace    string `json:"trace_id,omitempty"`

	PromptTokens  int     `json:"prompt_tokens"`            // of all prompts together, as estimated here
	LongestPrompt int32   `json:"longest_prompt,omitempty"` // of the longest of several
	Prompts       int32   `json:"prompts,omitempty"`        // if there are several
	More          int32   `json:"more,omitempty"`           // candidates beyond those listed
	LeftOut       int32   `json:"left_out,omitempty"`       // workers of a large pool that were no candidates, about
	PromptBlocks  int32   `json:"prompt_blocks"`            // of the longest
	BlockTokens   float32 `json:"block_tokens"`

	Tokens bool `json:"in_tokens,omitempty"` // the prompt's ids are known, and a block is a token
	Live   bool `json:"live,omitempty"`      // Believed is what the worker itself reported

	Worker    string        `json:"worker,omitempty"` // the one that answered; before that the first of the order
	Reason    string        `json:"reason,omitempty"` // why the first of the order was chosen
	Fallback  string        `json:"fallback,omitempty"`
	Fuel      int64         `json:"fuel"`
	PickTime  time.Duration `json:"pick_ns"`
	Matched   int32         `json:"matched_blocks"`
	Predicted int32         `json:"predicted_blocks"` // that the first of the order was believed to hold, from history
	Believed  int           `json:"believed_tokens"`  // of the prompt, in the last trip's worker's cache

	Candidates []Candidate `json:"candidates,omitempty"` // in the order of the choice, then those that were skipped
	Attempts   []Attempt   `json:"attempts,omitempty"`   // those that gave the client no answer

	// Frame is what the strategy decided on, in the bytes of sdk/abi: an abi.Header, then an abi.Row for each listed
	// candidate that had one. JSON has it in base64.
	Frame []byte `json:"frame,omitempty"`

	Offered *Offered `json:"-"` // what the strategy could ask for beside its frame, for the access log; nil = nothing

	Queue     time.Duration `json:"queue_ns,omitempty"` // believed wait at the first of the order
	FirstByte time.Duration `json:"ttft_ns,omitempty"`  // from the arrival
	Total     time.Duration `json:"total_ns,omitempty"`
	Usage     Usage         `json:"usage,omitzero"` // the engine's own counts

	*Aliased // the name that the client sent for the model; nil = the model's own
	*Named   // the session that the request names, bound or not; nil = none
	*Queued  // how it waited in the router's queue; nil = it did not
	*Aside   // what few decisions have; nil = nothing of it

	Split *Split `json:"split,omitempty"` // nil = one worker has computed the prompt and the answer

	listed jsonline.Line // of CandidatesJSON; empty = not written yet
}

// Aliased is a name for other models. It is never changed.
type Aliased struct {
	Alias string `json:"alias,omitempty"`
	Fell  string `json:"fallback_for,omitempty"` // why the model before did not serve it: down, full or context
}

// Named is a session as the request names it. It is never changed.
type Named struct {
	Identity string `json:"identity,omitempty"` // fingerprint of the name
	Parent   string `json:"parent,omitempty"`   // that of the session that began it
	NamedBy  string `json:"named_by,omitempty"` // the field that names it, as X-Session-Id or body.user
	Turn     int    `json:"turn,omitempty"`     // number of the request in it, from 1, as this router has counted
}

// Queued is a request's wait in the router's queue.
type Queued struct {
	Priority int           `json:"priority"`
	Cut      int           `json:"class_cut,omitempty"`     // the class that the strategy gave, which the key may not have
	Behind   int           `json:"waited_behind"`           // so many others, about, when it came; of one that waits, now
	Waited   time.Duration `json:"waited_ns,omitempty"`     // in all, so far; 0 = it was refused at once
	Waits    bool          `json:"waits,omitempty"`         // still
	Limit    string        `json:"waits_for,omitempty"`     // limit of its key, at its last place; absent = for a worker
	Empty    bool          `json:"none_up,omitempty"`       // at its last place no worker was up
	Stale    bool          `json:"lacks_weights,omitempty"` // no worker has the weights that it asks for
}

// For says what the request waits for.
func (q *Queued) For() string {
	if q.Limit != "" {
		return "its key's " + q.Limit
	}
	if q.Empty {
		return "a worker: none is up"
	}
	if q.Stale {
		return "a worker with the weights that it asks for (X-Warmpath-Weights-Min)"
	}
	return "a worker with room"
}

// Split is the prefill of a request at a worker of its own.
type Split struct {
	Prefiller string        `json:"prefiller,omitempty"` // "" = none was found
	Named     bool          `json:"named,omitempty"`     // the strategy has named it; else the host had one chosen
	Result    string        `json:"result"`              // exchange.Prefilled; if it is not "done", Worker did it itself
	Why       string        `json:"why,omitempty"`       // it was not done
	Took      time.Duration `json:"took_ns"`             // of connectors that send both legs at once, until the choice
	Cached    int           `json:"cached_tokens,omitempty"`
}

// Offered is what a strategy can ask the host for beside its frame. It is never changed.
type Offered struct {
	Labels  []string           // names of the label bits of the rows
	Headers map[string]*string // the header fields that it may see, by lower-case name; nil = the request has none
}

// Aside is what only decisions of some pools have. It is never changed.
type Aside struct {
	Pair    string   `json:"pair,omitempty"`    // the worker that the strategy named for the prompt; Worker = no other one
	Filters []string `json:"filters,omitempty"` // what each filter has left, in words
	Weights string   `json:"weights,omitempty"` // versions that the answer was made with, as 12 or 12-13
	Cache   []string `json:"cache,omitempty"`   // what the strategy asked for, and what becomes of it, in words
	Hint    string   `json:"kv_hint,omitempty"` // whose KV the worker was told to copy, in words
}

// ownAside gives r a copy of its Aside, which others may share, and returns it to be filled in.
func (r *Record) ownAside() *Aside {
	a := new(Aside)
	if r.Aside != nil {
		*a = *r.Aside
	}
	r.Aside = a
	return a
}

// Made notes the versions of the weights that the answer was made with, "" if they are not known.
func (r *Record) Made(weights string) {
	if weights == r.MadeWith() {
		return
	}
	r.ownAside().Weights = weights
}

// MadeToo notes the versions of the weights that the rest of the answer was made with.
func (r *Record) MadeToo(weights string) {
	from, _, _ := strings.Cut(r.MadeWith(), "-")
	to := weights[strings.LastIndexByte(weights, '-')+1:]
	switch {
	case from == "":
		r.Made(weights)
	case to != "" && to != from:
		r.Made(from + "-" + to)
	}
}

// MadeWith returns the versions of the weights, "" if they are not known.
func (r *Record) MadeWith() string {
	if r.Aside == nil {
		return ""
	}
	return r.Weights
}

// PairName returns the worker that the strategy named to compute the prompt, "" if it named none.
func (r *Record) PairName() string {
	if r.Aside == nil {
		return ""
	}
	return r.Pair
}

// Filtered returns what the filters have left, in words, "" without a filter.
func (r *Record) Filtered() string {
	if r.Aside == nil {
		return ""
	}
	return strings.Join(r.Filters, "; ")
}

// Wished notes what becomes of the strategy's wishes for the cache.
func (r *Record) Wished(said []string) {
	r.ownAside().Cache = said
}

// NoteHint notes whose KV the last worker was told to copy, in words; "" = nobody's.
func (r *Record) NoteHint(hint string) {
	if r.Aside == nil && hint == "" || r.Aside != nil && hint == r.Hint {
		return
	}
	r.ownAside().Hint = hint
}

// Wishes returns what becomes of the strategy's wishes for the cache, in words, "" without any.
func (r *Record) Wishes() string {
	if r.Aside == nil {
		return ""
	}
	return strings.Join(r.Cache, "; ")
}

// AliasName returns the alias by which the client named the model, "" if it used none.
func (r *Record) AliasName() string {
	if r.Aliased == nil {
		return ""
	}
	return r.Alias
}

// Memory returns an empty record with the memory of this one, which may not be used any more.
func (r *Record) Memory() Record {
	return Record{Candidates: r.Candidates[:0], Frame: r.Frame[:0], listed: r.listed[:0]}
}

// Bare returns a copy that shares no memory with r but its texts: without candidates, attempts and frame.
func (r *Record) Bare() Record {
	bare := *r
	bare.Candidates, bare.Attempts, bare.Frame, bare.listed = nil, nil, nil, nil
	return bare
}

// Usage is the engine's own counts of an answer.
type Usage prompt.Usage

// MarshalJSON writes the counts that the engine gave.
func (u Usage) MarshalJSON() ([]byte, error) {
	if !u.Known {
		return []byte("{}"), nil
	}
	said := struct {
		Prompt int  `json:"prompt_tokens"`
		Output int  `json:"output_tokens"`
		Cached *int `json:"cached_tokens,omitempty"`
	}{u.Prompt, u.Output, nil}
	if u.CachedKnown {
		said.Cached = &u.Cached
	}
	return json.Marshal(&said)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *Usage) UnmarshalJSON(text []byte) error {
	var said struct {
		Prompt *int `json:"prompt_tokens"`
		Output int  `json:"output_tokens"`
		Cached *int `json:"cached_tokens"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	*u = Usage{Output: said.Output}
	if said.Prompt != nil {
		u.Prompt, u.Known = *said.Prompt, true
	}
	if said.Cached != nil {
		u.Cached, u.CachedKnown = *said.Cached, true
	}
	return nil
}

// Attempt is a try at a worker that gave the client no answer.
type Attempt struct {
	Worker string        `json:"worker"`
	Reason string        `json:"reason"`
	After  time.Duration `json:"after_ns"` // the request's arrival the router gave it up
}
