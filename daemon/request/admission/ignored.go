package admission

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Explains returns the form in which the client gets the decision, 1 or json, "" if it gets none. It names in the
// answer which fields of the request's header this router reads and could not follow.
func (r *Request) Explains(out *message.Outbound) (how string) {
	ignored := func(names []string, want string, ok func(text string) bool) {
		for _, name := range names {
			if text := r.In.Get(name); text != "" && !ok(text) {
				out.Set("X-Warmpath-Ignored", name+": want "+want)
			}
		}
	}
	ignored(priorityFields[:], "a number that the client may ask for: [[keys]] priority", func(text string) bool {
		p, ok := prompt.Priority([]byte(text))
		return ok && p >= r.In.Caller.Priority[0] && p <= r.In.Caller.Priority[1]
	})
	ignored(sloFields[:], "a number of milliseconds, as 500", func(text string) bool { return milliseconds(text) > 0 })
	ignored(r.Epoch.Deadline, "seconds, as 30, or a time, as 1500ms", func(string) bool {
		return !r.In.Deadline(r.Arrived).IsZero()
	})
	ignored(explainFields[:], "1 or json, and a client that may ask for it: explain of [server] and [[keys]]",
		func(text string) bool {
			if (text == "1" || text == "json") && r.Epoch.Explain && r.In.Caller.Explain {
				how = text
			}
			return how != ""
		})
	return how
}

var explainFields = [...]string{"X-Warmpath-Explain"}

// milliseconds reads a number of them, 0 for a text that is none above zero.
func milliseconds(text string) float64 {
	if ms, err := strconv.ParseFloat(text, 64); err == nil && ms > 0 && ms < 1e9 {
		return ms
	}
	return 0
}
