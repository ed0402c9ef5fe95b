package metrics

import (
	"strings"
	"sync"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// maxNames bounds the values that a label can take from clients.
const maxNames = 1000

// names passes the first maxNames values, and replaces the rest by "other".
type names struct {
	mu   sync.Mutex // guards seen
	seen map[string]struct{}
}

// label returns s in valid UTF-8, or "other".
func (n *names) label(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; ok {
		return s
	}
	if len(n.seen) >= maxNames || len(s) > 256 {
		return "other"
	}
	if n.seen == nil {
		n.seen = map[string]struct{}{}
	}
	n.seen[s] = struct{}{}
	return s
}

// nameAll makes labels of the models that a pool's configuration names: their requests count under them before a worker
// has ever served one.
func (n *names) nameAll(p *readiness.Pool) {
	for _, model := range p.Models {
		if p.Patterns.Names(model) {
			n.label(model)
		}
	}
}

// known returns s if label has passed it before, and "unknown" if not.
func (n *names) known(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; ok {
		return s
	}
	return "unknown"
}
