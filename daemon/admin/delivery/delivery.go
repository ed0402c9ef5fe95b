package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// Store takes modules. Its methods are safe for concurrent use: while one changes something, others are refused.
type Store struct {
	MaxBytes int                                     // of a module
	MaxFiles int                                     // in the folder
	Setting  func() Setting                          // in force
	IsName   func(name string) bool                  // as the configuration has names
	Read     func(name, path string) ([]byte, error) // a module, of a file or built in
	Path     func(name string) string                // in the folder
	Check    func(name string, wasm []byte) error    // loads it as each pool that it serves would
	CheckFor func(pool, name string) error           // loads a strategy that there is as the pool would
	Write    func(path string, data []byte) error    // all or nothing
	Reload   func() error                            // all or nothing

	// Remember writes down which strategy serves a pool from the next reload on, in place of insteadOf; name "" = the
	// one that the file names. undo restores the entry before.
	Remember func(pool, name, insteadOf string) (undo func() error, err error)

	changing sync.Mutex
}

// Delivered is the answer to a delivery.
type Delivered struct {
	Strategy
	Before string `json:"before,omitempty"` // the sum of the module in whose place it came
	Note   string `json:"note,omitempty"`
}

// Sum is the SHA-256 of a module, in hex.
func Sum(wasm []byte) string {
	s := sha256.Sum256(wasm)
	return hex.EncodeToString(s[:])
}

// begin keeps other changes off until end is called.
func (s *Store) begin() (now Setting, end func(), err error) {
	now = s.Setting()
	if now.Dir == "" {
		return now, nil, refuse(Conflict, "there is no folder for modules; set server.strategies_dir, and reload")
	}
	if !s.changing.TryLock() {
		return now, nil, refuse(Conflict, "another change of strategies is under way; ask again when it has ended")
	}
	return now, s.changing.Unlock, nil
}

// Strategies lists all strategies that there are.
func (s *Store) Strategies() []Strategy {
	list := s.Setting().Strategies
	for i := range list {
		if wasm, err := s.Read(list[i].Name, list[i].Path); err == nil {
			list[i].SHA256, list[i].Bytes = Sum(wasm), len(wasm)
		}
	}
	return list
}

// Put brings a module in under a name. was is the sum of the module in whose place it is to come, "" = of any or none.
func (s *Store) Put(name string, wasm []byte, was string) (*Delivered, error) {
	now, end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	if err := s.mayPut(&now, name, wasm); err != nil {
		return nil, err
	}
	path := s.Path(name)
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
	if err := s.Check(name, wasm); err != nil {
		return nil, refuse(BadModule, "%v", err)
	}
	if err := s.Write(path, wasm); err != nil {
		return nil, refuse(Broken, "the module cannot be written; make %s writable for the daemon's user: %v", now.Dir, err)
	}
	if err := s.Reload(); err != nil {
		return nil, errors.Join(refuse(Conflict, "the module is good, and the configuration is not: nothing has changed; "+
			"correct that first: %v", err), s.putBack(path, before))
	}
	d.Strategy = s.strategy(name)
	if len(d.Serves) == 0 {
		d.Note = "no pool names it: activate it, or write strategy = \"" + name + "\" for a pool, a shadow or a canary"
	}
	return d, nil
}

// mayPut refuses what can be refused without the module's code.
func (s *Store) mayPut(now *Setting, name string, wasm []byte) error {
	stored := 0
	for _, have := range now.Strategies {
		switch {
		case have.Source == Folder && have.Name != name:
			stored++
		case have.Name != name:
		case have.Source == BuiltIn:
			return refuse(Unnamed, "%s is a built-in strategy; give the module another name", name)
		case have.Source == File:
			return refuse(Conflict, "strategies.%s.path of the configuration file names %s, so a module in the folder would "+
				"serve nobody; remove path there, or push under another name", name, have.Path)
		}
	}
	switch {
	case !s.IsName(name) || strings.HasPrefix(name, "."):
		return refuse(Unnamed, "%.80q is no name of a strategy; write up to 64 of a-z, A-Z, 0-9, dot, dash and underscore",
			name)
	case stored >= s.MaxFiles:
		return refuse(Conflict, "%s has %d modules already; remove one that serves nobody", now.Dir, stored)
	case len(wasm) == 0:
		return refuse(BadModule, "the request has no body; send the module's bytes")
	}
	return nil
}

// putBack restores the file before.
func (s *Store) putBack(path string, before []byte) error {
	var err error
	if before == nil {
		err = os.Remove(path)
	} else {
		err = s.Write(path, before)
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

// strategy returns what is known of a strategy now.
func (s *Store) strategy(name string) Strategy {
	all := s.Strategies()
	if i := slices.IndexFunc(all, func(have Strategy) bool { return have.Name == name }); i >= 0 {
		return all[i]
	}
	return Strategy{Name: name}
}

// Remove deletes a module that serves nobody.
func (s *Store) Remove(name string) error {
	now, end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	i := slices.IndexFunc(now.Strategies, func(have Strategy) bool { return have.Name == name && have.Source == Folder })
	if i < 0 {
		return refuse(Unknown, "%s has no module of the name %.80q; GET /api/v1/strategies lists them", now.Dir, name)
	}
	if by := now.Strategies[i].Serves; len(by) > 0 {
		return refuse(Conflict, "%s is %s of pool %s; have another serve there first", name, by[0].As, by[0].Pool)
	}
	path := s.Path(name)
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return refuse(Broken, "the module cannot be removed; make %s writable for the daemon's user: %v", now.Dir, err)
	}
	if err := s.Reload(); err != nil {
		return errors.Join(refuse(Conflict, "the configuration in force needs the module, which stays: %v", err),
			s.putBack(path, before))
	}
	return nil
}
