package served

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Spec is a strategy that can run.
type Spec struct {
	Name    string // of the column
	Wasm    []byte // nil: Native
	Native  func() sdk.Strategy
	Options map[string]string
	Allow   []string // as strategies.NAME.allow
	Filters []Spec   // that are asked before it
}

// Read finds a strategy by what an operator writes: the name of a built-in, native:NAME for its rule outside of the
// sandbox, or the path of a module, which ends in .wasm. Options of a module follow it, as in "mine.wasm each=.02".
// Filters stand before it, as in "tenants.wasm > prefixaware".
func Read(text string) (Spec, error) {
	if filters, last, is := cutLast(text, " > "); is {
		before, err := Read(filters)
		if err != nil {
			return Spec{}, err
		}
		spec, err := Read(last)
		spec.Filters = append(before.Filters, before)
		spec.Name = before.Name + " > " + spec.Name
		return spec, err
	}
	name, options := cutOptions(text)
	if plain, is := strings.CutPrefix(name, "native:"); is {
		if options != nil {
			return Spec{}, fmt.Errorf("served: %s takes no options; give them to %s", name, plain)
		}
		if plugins.Native(plain) == nil {
			return Spec{}, fmt.Errorf("served: no strategy %q is built in; there are %s",
				plain, strings.Join(plugins.Names(), ", "))
		}
		return Spec{Name: name, Native: func() sdk.Strategy { return plugins.Native(plain) }}, nil
	}
	path := ""
	if strings.HasSuffix(name, ".wasm") {
		path = name
		name = strings.TrimSuffix(filepath.Base(path), ".wasm")
	}
	wasm, err := plugins.Read(name, path)
	return Spec{Name: name, Wasm: wasm, Options: options}, err
}

// cutLast cuts a text at the last place of sep.
func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// cutOptions cuts each " key=value" off the end of a text; without any, options is nil.
func cutOptions(text string) (name string, options map[string]string) {
	for {
		i := strings.LastIndexByte(text, ' ')
		key, value, is := strings.Cut(text[i+1:], "=")
		if i < 0 || !is {
			return text, options
		}
		if options == nil {
			options = map[string]string{}
		}
		options[key], text = value, strings.TrimRight(text[:i], " ")
	}
}

// Loader makes strategies for many runs. A module is compiled once. Safe for concurrent use.
type Loader struct {
	host *host.Host

	mu     sync.Mutex // guards loaded
	loaded map[[32]byte]*host.Strategy
}

// NewLoader makes a Loader. Close it after the last run.
func NewLoader(ctx context.Context) (*Loader, error) {
	h, err := host.New(ctx, host.Config{Stepped: true})
	if err != nil {
		return nil, err
	}
	return &Loader{host: h, loaded: map[[32]byte]*host.Strategy{}}, nil
}

// Close frees the sandbox.
func (l *Loader) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.loaded {
		s.Close(ctx)
	}
	return l.host.Close(ctx)
}

// Load makes a strategy for one router of one run, and its filters. Its store is kept; nil = it has none.
func (l *Loader) Load(ctx context.Context, s *Spec, seed uint64, kept *Kept) (*host.Strategy, error) {
	var filters []*host.Strategy
	for i := range s.Filters {
		f, err := l.load(ctx, &s.Filters[i], seed, kept)
		if err == nil && !f.Wants(abi.WantFilter) {
			err = fmt.Errorf("served: %s filters nothing (it has no wp_filter), so it can only be the last of %q",
				s.Filters[i].Name, s.Name)
		}
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	last, err := l.load(ctx, s, seed, kept)
	if err == nil {
		last.Behind(filters)
	}
	return last, err
}

// load makes one strategy.
func (l *Loader) load(ctx context.Context, s *Spec, seed uint64, kept *Kept) (*host.Strategy, error) {
	if s.Wasm == nil {
		own := s.Native()
		return host.Native(s.Name, sdk.WantsOf(own), func(h *abi.Header, rows []abi.Row, order []uint32) uint64 {
			return uint64(sdk.PickNative(own, h, rows, order))
		}), nil
	}
	o := host.Options{Values: maps.Clone(s.Options), Seed: seed, Allow: s.Allow}
	if kept != nil {
		o.KV = kept.store
	}
	// The engine keeps a module's code for as long as one copy of it is loaded.
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := sha256.Sum256(s.Wasm)
	if l.loaded[sum] == nil {
		first, err := l.host.Load(ctx, s.Name, s.Wasm, o)
		if err != nil {
			return nil, err
		}
		l.loaded[sum] = first
	}
	return l.host.Load(ctx, s.Name, s.Wasm, o)
}
