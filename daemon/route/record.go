package route

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Record is what was decided on a request, why, and what came of it. Headers, the access log, metrics and pages read
// it. The rows of its candidates are enough to decide it again. A field that is not known is zero.
type Record struct {
	ID       string `json:"id"`
	Endpoint string `json:"endpoint,omitempty"` // the kind of body, as chat
	Pool     string `json:"pool"`
	Strategy string `json:"strategy"`
	Module   string `json:"module_sha256,omitempty"`
	Model    string `json:"model"`
	Session  string `json:"session,omitempty"` // the kind of the session that it belongs to

	PromptTokens  int     `json:"prompt_tokens"`            // of all prompts together, as estimated here
	LongestPrompt int     `json:"longest_prompt,omitempty"` // of the longest of several
	Prompts       int     `json:"prompts,omitempty"`        // if there are several
	PromptBlocks  int     `json:"prompt_blocks"`            // of the longest
	BlockTokens   float32 `json:"block_tokens"`

	Worker    string        `json:"worker,omitempty"` // that answered
	Reason    string        `json:"reason,omitempty"` // why the first of the order was chosen
	Fallback  string        `json:"fallback,omitempty"`
	Fuel      int64         `json:"fuel"`
	PickTime  time.Duration `json:"pick_ns"`
	Matched   int           `json:"matched_blocks"`
	Predicted int           `json:"predicted_blocks"` // that the first of the choice was believed to hold, from history
	Believed  int           `json:"believed_tokens"`  // of the prompt, in the cache of the worker that was sent to last

	Candidates []Candidate `json:"candidates,omitempty"` // in the order of the choice, then those that were skipped
	More       int         `json:"more,omitempty"`       // candidates beyond those listed
	Attempts   []Attempt   `json:"attempts,omitempty"`   // those that brought nothing

	Queue     time.Duration `json:"queue_ns,omitempty"` // believed wait of the worker that came first
	FirstByte time.Duration `json:"ttft_ns,omitempty"`  // from the arrival
	Total     time.Duration `json:"total_ns,omitempty"`
	Usage     Usage         `json:"usage,omitzero"` // the engine's own counts
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

// Attempt is a try at a worker that brought nothing for the client.
type Attempt struct {
	Worker string `json:"worker"`
	Reason string `json:"reason"`
}

// Candidate is one worker as a decision saw it. Times are seconds; the terms of the cost are those of package score,
// whatever strategy chose.
type Candidate struct {
	Worker    string  `json:"worker"`
	State     string  `json:"state"`
	Skipped   string  `json:"skipped,omitempty"` // why it was no candidate
	GPU       uint32  `json:"gpu_blocks"`
	L1        uint32  `json:"l1_blocks"`
	L2        uint32  `json:"l2_blocks"`
	InFlight  uint32  `json:"in_flight"`
	Wait      float64 `json:"wait"`
	Prefill   float64 `json:"prefill"`
	Eviction  float64 `json:"eviction"`
	Tilt      float64 `json:"tilt"`
	Cost      float64 `json:"cost"`
	FreeGPU   float32 `json:"free_gpu_tokens"`
	Slowness  float64 `json:"slowness"`
	Load      float64 `json:"load"`
	SlowStart bool    `json:"slow_start,omitempty"`
}

// maxCandidates bounds the candidates that a record lists: 64 of them are some 10 KB of JSON.
const maxCandidates = 64

// Note writes what is cheap to know of the decision into r. It allocates nothing.
func (c *Choice) Note(r *Record) {
	h := &c.fleet.frame.Header
	r.Strategy, r.Fallback = c.strategy, c.result.Fallback
	r.PromptTokens, r.PromptBlocks, r.BlockTokens = c.size.all, int(h.PromptBlocks), h.BlockTokens
	if n := len(c.ask.Prompt.Chains); n > 1 {
		r.Prompts, r.LongestPrompt = n, c.size.longest
	}
	r.Fuel, r.PickTime, r.Believed = c.result.Fuel, c.result.Took, c.held
	if c.result.Row >= 0 {
		r.Queue = time.Duration(c.fleet.frame.Rows[c.result.Row].Wait * float64(time.Second))
		r.Predicted = int(c.fleet.frame.Rows[c.result.Row].Predicted)
	}
	r.Session = c.SessionKind()
}

// SessionKind is the kind of the session that the request belongs to, "" if it belongs to none.
func (c *Choice) SessionKind() string {
	if c.stay.worker() == "" && c.stay.at == "" {
		return ""
	}
	return c.stay.name.Kind.String()
}

// Explain writes into r all of the decision: the module, the reason in words and the candidates. It reports false
// after Release.
func (c *Choice) Explain(r *Record) bool {
	if c.fleet == nil {
		return false
	}
	c.Note(r)
	if s := c.pool.Strategy.Strategy(); s != nil {
		r.Module = s.SHA256()
	}
	r.Reason = c.Reason()
	r.Candidates, r.More = c.candidates()
	return true
}

// Reason says why the first of the order was chosen.
func (c *Choice) Reason() string {
	switch bound := int(c.fleet.frame.Header.Bound); {
	case c.stay.silent && c.binds():
		return "store silent: by the session's name"
	case bound >= 0 && c.result.Row == bound:
		return "bound session"
	case c.result.Fallback != "":
		return "fallback: " + c.result.Fallback
	}
	if c.module != nil {
		if name := c.module.ReasonName(c.result.Reason); name != "" {
			return name
		}
	}
	return c.pool.reason(c.strategy, c.result.Reason)
}

func (c *Choice) candidates() (list []Candidate, more int) {
	rows := c.fleet.frame.Rows
	stats := c.pool.Workers.Stats(c.ask.At)
	list = make([]Candidate, 0, min(maxCandidates, max(len(rows), len(stats))))
	scale := score.NewScale(&c.fleet.frame.Header, rows)
	for _, i := range c.result.Order {
		if len(list) == maxCandidates {
			return list, len(c.result.Order) - len(list)
		}
		list = append(list, candidate(&rows[i], c.fleet.workers[i].ID(), &scale))
	}
	for i := range rows { // of a session that stays at its worker
		if !slices.Contains(c.result.Order, int32(i)) && !slices.Contains(c.tried, c.fleet.workers[i]) && len(list) < maxCandidates {
			other := candidate(&rows[i], c.fleet.workers[i].ID(), &scale)
			other.Skipped = "the session stays at its worker"
			list = append(list, other)
		}
	}
	for i := range stats {
		s := &stats[i]
		if len(list) == maxCandidates || c.fleet.row(s.ID) >= 0 {
			continue
		}
		list = append(list, Candidate{Worker: s.ID, State: s.State.String(), Skipped: skipped(s, c.ask.Prompt.Model), InFlight: uint32(s.InFlight),
			Wait: s.Wait, Slowness: s.Slow, Load: s.Load, SlowStart: s.SlowStart})
	}
	return list, 0
}

func candidate(r *abi.Row, id string, scale *score.Scale) Candidate {
	t := scale.Terms(r)
	return Candidate{Worker: id, State: "up", GPU: r.GPU, L1: r.L1, L2: r.L2, InFlight: r.InFlight, Wait: r.Wait,
		Prefill: t.Prefill, Eviction: t.Eviction, Tilt: t.Tilt, Cost: t.Cost, FreeGPU: r.FreeGPU, Slowness: r.Slow, Load: r.Load,
		SlowStart: r.State&abi.RowSlowStart != 0}
}

// skipped says why a worker was no candidate for the model.
func skipped(s *worker.Stats, model string) string {
	switch {
	case !s.Up && s.Why != "":
		return s.State.String() + ": " + s.Why
	case !s.Up:
		return s.State.String()
	case model != "" && s.Models != nil && !slices.Contains(s.Models, model):
		return "does not list the model"
	case s.Limit > 0 && s.InFlight >= s.Limit:
		return "has max_in_flight requests"
	case s.SlowStart:
		return "begins slowly: not its turn"
	}
	return "was tried, or came up since"
}
