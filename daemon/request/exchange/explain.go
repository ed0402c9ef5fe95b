package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// explainInJSON adds the whole record, as far as it fits into a header field.
func explainInJSON(out *message.Outbound, r *record.Record) {
	out.Set("X-Warmpath-Decision", decision(*r))
}

// maxShown bounds the candidates in a header field: clients take some 16 KB of header fields.
const maxShown = 16

// decision returns the record as JSON. The frame is for the log.
func decision(r record.Record) string {
	r.Frame = nil
	if over := len(r.Candidates) - maxShown; over > 0 {
		r.Candidates, r.More = r.Candidates[:maxShown], r.More+int32(over)
	}
	text, err := json.Marshal(&r)
	if err != nil { // a term of the cost is no number
		return `{"error":"the decision cannot be written as JSON"}`
	}
	return string(text)
}

// explainRefusal adds what is known of a request before a strategy was asked.
func explainRefusal(out *message.Outbound, seen *message.Seen, pool string) {
	out.Set("X-Warmpath-Retries", strconv.Itoa(int(seen.Retries)))
	if pool != "" {
		out.Set("X-Warmpath-Pool", pool)
	}
}

// explainInFields adds the decision field by field.
func explainInFields(out *message.Outbound, seen *message.Seen, pool string) {
	explainRefusal(out, seen, pool)
	out.Set("X-Warmpath-Strategy", seen.Strategy)
	out.Set("X-Warmpath-Reason", seen.Reason)
	if left := seen.Filtered(); left != "" {
		out.Set("X-Warmpath-Filters", left)
	}
	out.Set("X-Warmpath-Prompt", promptSize(&seen.Record))
	if list := candidates(&seen.Record); list != "" { // none is left when everybody has failed
		out.Set("X-Warmpath-Candidates", list)
	}
	if seen.Worker != "" {
		out.Set("X-Warmpath-Worker", seen.Worker)
		out.Set("X-Warmpath-Matched-Blocks", strconv.Itoa(int(seen.Matched)))
		out.Set("X-Warmpath-Matched-Tokens", strconv.Itoa(seen.Believed))
		if seen.Split != nil {
			out.Set("X-Warmpath-Prefiller", cmp.Or(seen.Split.Prefiller, "none"))
		}
	}
}

// promptSize returns blocks and tokens of the prompt. Of a list they are the longest one's, as the matched blocks are;
// what all of them have, and the matched tokens are part of, stands behind.
func promptSize(r *record.Record) string {
	if r.Prompts < 2 {
		return fmt.Sprintf("blocks=%d tokens=%d", r.PromptBlocks, r.PromptTokens)
	}
	return fmt.Sprintf("blocks=%d tokens=%d prompts=%d all_tokens=%d", r.PromptBlocks, r.LongestPrompt, r.Prompts,
		r.PromptTokens)
}

// candidates lists the rows in the order of the choice: id, matched blocks, queued seconds, in flight.
func candidates(r *record.Record) string {
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
