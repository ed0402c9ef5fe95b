package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/route"
)

// explain adds the decision to the answer's head if the client asked for it and the operator allows it: in fields of
// its own ("1"), or the whole record as JSON ("json"). Workers are named by id, never by URL.
func (r *request) explain(out *Outbound) {
	how := r.in.Get("X-Warmpath-Explain")
	if how != "1" && how != "json" || !r.epoch.Explain {
		return
	}
	seen := &r.in.Seen
	if r.chosen && seen.Explain(&r.choice) {
		seen.ID = r.in.ID
	}
	if how == "json" {
		if text, err := json.Marshal(&seen.Record); err == nil {
			out.Set("X-Warmpath-Decision", string(text))
		}
		return
	}
	out.Set("X-Warmpath-Retries", strconv.Itoa(seen.Retries))
	if r.pool != nil {
		out.Set("X-Warmpath-Pool", r.pool.Name)
	}
	if !r.chosen { // refused before a strategy was asked
		return
	}
	out.Set("X-Warmpath-Strategy", seen.Strategy)
	out.Set("X-Warmpath-Reason", seen.Reason)
	out.Set("X-Warmpath-Prompt", promptSize(&seen.Record))
	if list := candidates(&seen.Record); list != "" { // none is left when everybody has failed
		out.Set("X-Warmpath-Candidates", list)
	}
	if seen.Worker != "" {
		out.Set("X-Warmpath-Worker", seen.Worker)
		out.Set("X-Warmpath-Matched-Blocks", strconv.Itoa(seen.Matched))
		out.Set("X-Warmpath-Matched-Tokens", strconv.Itoa(seen.Believed))
	}
}

// promptSize tells blocks and tokens of the prompt. Of a list they are the longest one's, as the matched blocks are;
// what all of them have, and the matched tokens are part of, stands behind.
func promptSize(r *route.Record) string {
	if r.Prompts < 2 {
		return fmt.Sprintf("blocks=%d tokens=%d", r.PromptBlocks, r.PromptTokens)
	}
	return fmt.Sprintf("blocks=%d tokens=%d prompts=%d all_tokens=%d", r.PromptBlocks, r.LongestPrompt, r.Prompts, r.PromptTokens)
}

// candidates lists the rows in the order of the choice: id, matched blocks, queued seconds, in flight.
func candidates(r *route.Record) string {
	var b strings.Builder
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Skipped != "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s;matched=%d;wait=%.3f;inflight=%d", c.Worker, c.GPU, c.Wait, c.InFlight)
	}
	if r.More > 0 {
		fmt.Fprintf(&b, ", and %d more", r.More)
	}
	return b.String()
}
