package route

import (
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// surely is the share of a prompt's estimated tokens that it surely has. The estimate goes by the bytes of its text,
// and an alphabet or a language that the pool has not seen moves it by a quarter.
const surely = .7

// needOf returns how many tokens of its model's length a request surely takes: the longest prompt, and the answer that
// is asked for. ids is the number of the prompt's token ids, 0 if they are not known. Of a rerank the parts are prompts
// of their own, so nothing is known.
func needOf(r *prompt.Request, z *size, ids int) int {
	if k := r.Kind; !k.Generates() && k != prompt.Embedding {
		return 0
	}
	n := z.longest
	switch {
	case ids > 0:
		n = ids
	case !z.counted:
		n = int(float64(n) * surely)
	}
	return n + int(min(r.MaxTokens, 1<<30))
}

// tied reports whether nobody but the bound worker can serve the session.
func (s *stay) tied(a *Ask) bool {
	return s.state == bound && (s.staysPut(a) || s.binding.Kind == session.Response)
}
