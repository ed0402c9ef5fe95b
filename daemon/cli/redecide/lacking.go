package redecide

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// lacking notes what a strategy asks for and a record does not hold. It answers as if there were none. Not safe for
// concurrent use: a strategy of a host that is Stepped has one instance.
type lacking struct {
	what    []string
	headers map[string]*string // that are recorded; nil = the request had none of that name
}

func (l *lacking) note(what string) {
	if !slices.Contains(l.what, what) {
		l.what = append(l.what, what)
	}
}

// Header implements [host.HeaderSource].
func (l *lacking) Header(name string) (string, bool) {
	if v, ok := l.headers[name]; ok {
		if v == nil {
			return "", false
		}
		return *v, true
	}
	l.note("header " + name)
	return "", false
}

// Store is the store for the host whose strategy decides again. A record holds nothing of a store.
type Store struct{ asked bool }

// Get implements [host.KV].
func (s *Store) Get(_, _ string) ([]byte, bool) {
	s.asked = true
	return nil, false
}

// CompareAndSwap implements [host.KV].
func (s *Store) CompareAndSwap(_, _ string, _, _ []byte, _ time.Duration) int32 {
	s.asked = true
	return abi.ErrLimit
}

// Add implements [host.KV].
func (s *Store) Add(_, _ string, _ int64, _ time.Duration) (int64, int32) {
	s.asked = true
	return 0, abi.ErrLimit
}

var _ host.KV = (*Store)(nil)

// unfit reports whether the strategy asked for something that the record does not hold, so that its choice means
// nothing, and counts that.
func (r *Report) unfit(f *frame) bool {
	if r.store.asked {
		f.lacks.note("the store")
		r.store.asked = false
	}
	if len(f.lacks.what) == 0 {
		return false
	}
	r.Unfit++
	for _, what := range f.lacks.what {
		if !slices.Contains(r.Lacks, what) && len(r.Lacks) < MaxShown {
			r.Lacks = append(r.Lacks, what)
		}
	}
	return true
}
