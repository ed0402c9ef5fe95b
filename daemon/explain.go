package daemon

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/plugins"
)

// maxExplained bounds the candidates listed in a header: 64 of them are some 2 KB.
const maxExplained = 64

// explain adds the decision to the answer's head if the client asked for it and the operator allows it. Workers are named by
// id, never by URL. row is the one that answered; -1 = none.
func (e *exchange) explain(out *Outbound, row int) {
	if e.in.get("X-Warmpath-Explain") != "1" || !e.d.explain() {
		return
	}
	out.set("X-Warmpath-Retries", strconv.Itoa(e.retries))
	if e.pool != nil {
		out.set("X-Warmpath-Pool", e.pool.name)
	}
	if e.name == "" { // refused before a strategy was asked
		return
	}
	out.set("X-Warmpath-Strategy", e.name)
	out.set("X-Warmpath-Reason", e.reason())
	out.set("X-Warmpath-Prompt", e.promptSize())
	if list := e.candidates(); list != "" { // none is left when everybody has failed
		out.set("X-Warmpath-Candidates", list)
	}
	if row >= 0 {
		out.set("X-Warmpath-Worker", e.view.workers[row].ID())
		out.set("X-Warmpath-Matched-Blocks", strconv.Itoa(int(e.view.frame.Rows[row].GPU)))
		out.set("X-Warmpath-Matched-Tokens", strconv.Itoa(e.held))
	}
}

// promptSize tells blocks and tokens of the prompt. Of a list they are the longest one's, as the matched blocks are; what all
// of them have, and the matched tokens are part of, stands behind.
func (e *exchange) promptSize() string {
	h := &e.view.frame.Header
	if e.req == nil || len(e.req.Chains) < 2 {
		return fmt.Sprintf("blocks=%d tokens=%d", h.PromptBlocks, e.length)
	}
	return fmt.Sprintf("blocks=%d tokens=%d prompts=%d all_tokens=%d", h.PromptBlocks, e.longest, len(e.req.Chains), e.length)
}

// reason says why the first of the choice was chosen.
func (e *exchange) reason() string {
	switch {
	case e.stay.silent && e.stay.opened != "":
		return "store silent: by the session's name"
	case e.view.frame.Header.Bound >= 0 && e.result.Row == int(e.view.frame.Header.Bound):
		return "bound session"
	case e.result.Fallback != "":
		return "fallback: " + e.result.Fallback
	}
	return plugins.ReasonText(e.name, e.result.Reason)
}

// candidates lists the rows in the order of the choice: id, matched blocks, queued seconds, in flight.
func (e *exchange) candidates() string {
	var b strings.Builder
	for n, i := range e.result.Order {
		if n == maxExplained {
			fmt.Fprintf(&b, ", and %d more", len(e.result.Order)-n)
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		r := &e.view.frame.Rows[i]
		fmt.Fprintf(&b, "%s;matched=%d;wait=%.3f;inflight=%d", e.view.workers[i].ID(), r.GPU, r.Wait, r.InFlight)
	}
	return b.String()
}
