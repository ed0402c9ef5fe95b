package strategies

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/registry"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/host"
)

// Process is the process whose strategies these are.
type Process interface {
	// Configuration is the one that was loaded last.
	Configuration() *conf.Config
	// Served is what is in force for a request that comes in now.
	Served() *epoch.Epoch
	// Reload reads the configuration and the modules again. If it returns an error, nothing has changed.
	Reload() error
	// Share gives a module to the other routers of the history, and returns what the operator should know. If wasm is
	// empty, it withdraws the name; the other routers keep the module that they have.
	Share(name string, wasm []byte) (note string)
}

// Store takes modules. Its methods are safe for concurrent use: while one changes something, others are refused.
type Store struct {
	host    *host.Host
	process Process

	changing sync.Mutex
}

// NewStore takes modules for the configuration in force.
func NewStore(h *host.Host, p Process) *Store { return &Store{host: h, process: p} }

// MaxBytes bounds a module that the admin API takes. The sandbox would load four times that.
const MaxBytes = registry.MaxBytes

// Delivered is the answer to a delivery.
type Delivered struct {
	Strategy
	Before string `json:"before,omitempty"` // the sum of the module in whose place it came
	Note   string `json:"note,omitempty"`
}

// begin keeps other changes off until the caller unlocks s.changing.
func (s *Store) begin() (*conf.Config, error) {
	c := s.process.Configuration()
	if c.Server.StrategiesDir == "" {
		return nil, refuse(Conflict, "there is no folder for modules; set server.strategies_dir, and reload")
	}
	if !s.changing.TryLock() {
		return nil, refuse(Conflict, "another change of strategies is under way; ask again when it has ended")
	}
	return c, nil
}

// Strategies lists all strategies that there are.
func (s *Store) Strategies() (list []Strategy) {
	c := s.process.Configuration()
	for _, name := range names(c) {
		list = append(list, listed(c, name).withModule(c))
	}
	return list
}

// Put brings a module in under a name, here and at the routers of the history. was is the SHA-256 of the module that it
// is to replace. If was is "", it may replace any module, or none.
func (s *Store) Put(name string, wasm []byte, was string) (*Delivered, error) {
	d, err := s.put(name, wasm, was)
	if err == nil {
		d.Note = strings.TrimPrefix(d.Note+"; "+s.process.Share(name, wasm), "; ")
		d.Note = strings.TrimSuffix(d.Note, "; ")
	}
	return d, err
}

// Receive takes a module that another router was given at that time, unless the folder has a later one. done is false
// where it is to be called again.
func (s *Store) Receive(name string, at time.Time, sum string, fetch func() ([]byte, error)) (done bool, err error) {
	server := s.process.Configuration().Server
	info, err := os.Stat(server.StoredPath(name))
	if server.StrategiesDir == "" || err == nil && !at.After(info.ModTime()) {
		return true, nil
	}
	wasm, err := fetch()
	if err != nil || Sum(wasm) != sum { // a later push may be half there
		return false, err
	}
	_, err = s.put(name, wasm, "")
	busy, is := errors.AsType[*Refusal](err)
	return !is || busy.Why != Conflict, err
}

func (s *Store) put(name string, wasm []byte, was string) (*Delivered, error) {
	c, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	if err := mayPut(c, name, wasm); err != nil {
		return nil, err
	}
	path := c.Server.StoredPath(name)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(Broken, "the module that stands there cannot be read: %v", err)
	}
	d := &Delivered{}
	if before != nil {
		d.Before = Sum(before)
	}
	if was != "" && !strings.EqualFold(was, d.Before) {
		return nil, refuse(Conflict, "%s is to come in the place of %s, and %s stands there; look at what came between, "+
			"and name that sum", name, was, orNone(d.Before))
	}
	tried, err := checkLoads(s.host, c, name, wasm)
	if err != nil {
		return nil, refuse(BadModule, "%v", err)
	}
	defer tried.Close(context.Background())
	if err := conf.WriteWhole(path, wasm); err != nil {
		return nil, refuse(Broken, "the module cannot be written; make %s writable for the daemon's user: %v",
			c.Server.StrategiesDir, err)
	}
	if err := s.process.Reload(); err != nil {
		return nil, errors.Join(refuse(Conflict, "the module is good, and the configuration is not: nothing has changed; "+
			"correct that first: %v", err), putBack(path, before))
	}
	c = s.process.Configuration()
	d.Strategy = listed(c, name).withModule(c)
	if len(d.Serves) == 0 {
		d.Note = "no pool names it: activate it, or write strategy = \"" + name + "\" for a pool, a shadow or a canary"
	}
	return d, nil
}

// mayPut refuses what can be refused without the module's code.
func mayPut(c *conf.Config, name string, wasm []byte) error {
	stored := 0
	for _, known := range names(c) {
		have := listed(c, known)
		switch {
		case have.Source == folder && have.Name != name:
			stored++
		case have.Name != name:
		case have.Source == builtIn:
			return refuse(Unnamed, "%s is a built-in strategy; give the module another name", name)
		case have.Source == file:
			return refuse(Conflict, "strategies.%s.path of the configuration file names %s, so a module in the folder would "+
				"serve nobody; remove path there, or push under another name", name, have.Path)
		}
	}
	switch {
	case !conf.IsName(name) || strings.HasPrefix(name, "."):
		return refuse(Unnamed, "%.80q is no name of a strategy; write up to 64 of a-z, A-Z, 0-9, dot, dash and underscore",
			name)
	case stored >= conf.MaxStored:
		return refuse(Conflict, "%s has %d modules already; remove one that serves nobody", c.Server.StrategiesDir, stored)
	case len(wasm) == 0:
		return refuse(BadModule, "the request has no body; send the module's bytes")
	}
	return nil
}

// putBack restores the former file.
func putBack(path string, before []byte) error {
	var err error
	if before == nil {
		err = os.Remove(path)
	} else {
		err = conf.WriteWhole(path, before)
	}
	if err != nil {
		return refuse(Broken, "and the module of before could not be put back: %v", err)
	}
	return nil
}

func orNone(sum string) string {
	if sum == "" {
		return "nothing"
	}
	return sum
}

// Remove deletes a module that serves no pool.
func (s *Store) Remove(name string) error {
	c, err := s.begin()
	if err != nil {
		return err
	}
	defer s.changing.Unlock()
	have, dir := listed(c, name), c.Server.StrategiesDir
	if have.Source != folder {
		return refuse(Unknown, "%s has no module of the name %.80q; GET /api/v1/strategies lists them", dir, name)
	}
	if len(have.Serves) > 0 {
		by := have.Serves[0]
		return refuse(Conflict, "%s is %s of pool %s; have another serve there first", name, by.As, by.Pool)
	}
	before, err := os.ReadFile(have.Path)
	if err == nil {
		err = os.Remove(have.Path)
	}
	if err != nil {
		return refuse(Broken, "the module cannot be removed; make %s writable for the daemon's user: %v", dir, err)
	}
	if err := s.process.Reload(); err != nil {
		return errors.Join(refuse(Conflict, "the configuration in force needs the module, which stays: %v", err),
			putBack(have.Path, before))
	}
	s.process.Share(name, nil)
	return nil
}
