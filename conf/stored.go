package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// MaxStored bounds the modules in server.strategies_dir.
const MaxStored = 64

// activationsFile records which strategies were activated. It is in the folder of the modules.
const activationsFile = "activated.toml"

// maxActivations bounds that file: 1,000 pools are 150 KB.
const maxActivations = 1 << 20

// addStored adds the modules of server.strategies_dir to the strategies. A path in the file comes before the folder.
// Files that no pool can name are passed over: notes, hidden files, and copies such as "mine (1).wasm".
func addStored(r *report, c *Config) {
	dir := c.Server.StrategiesDir
	if dir == "" {
		return
	}
	const key = "server.strategies_dir"
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.add(key, err.Error(), "make the folder, readable for this user")
		return
	}
	n := 0
	for _, e := range entries {
		name, module := strings.CutSuffix(e.Name(), ".wasm")
		if !module || strings.HasPrefix(name, ".") || !IsName(name) {
			continue
		}
		n++
		if n > MaxStored {
			r.add(key, fmt.Sprintf("%s has over %d modules", dir, MaxStored), "remove those that serve nobody")
			return
		}
		switch s, written := c.Strategies[name]; {
		case slices.Contains(Builtins, name) && s.Path == "":
			r.add(key, fmt.Sprintf("%s has the name of a built-in", e.Name()), "give the module another name")
		case s.Path == "":
			if !written {
				s = DefaultStrategy()
			}
			s.Path = c.Server.StoredPath(name)
			if c.Strategies == nil {
				c.Strategies = map[string]Strategy{}
			}
			c.Strategies[name] = s
		}
	}
}

// activate replaces the strategies that the file names by the activated ones. The file has been checked as it stands:
// an activation without a module is no reason to refuse it.
func activate(r *report, c *Config) {
	if c.Server.StrategiesDir == "" {
		return
	}
	all, err := readActivations(c.Server.StrategiesDir)
	if err != nil {
		r.add("server.strategies_dir", err.Error(), "correct that file, or delete it: then the strategies named here serve")
		return
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		a, ok := all[p.Name]
		switch {
		case !ok:
		case a.InsteadOf != p.Strategy.Orders(), slices.Contains(p.Strategy.Filters(), a.Strategy):
			c.Ended = append(c.Ended, Ended{Pool: p.Name, Activation: a})
		case !c.HasModule(a.Strategy):
			c.Ended = append(c.Ended, Ended{Pool: p.Name, Activation: a, NoModule: true})
		default:
			*p = *ServedBy(p, a.Strategy)
			p.Canary = slices.DeleteFunc(p.Canary, func(one Canary) bool { return one.Strategy == a.Strategy })
			if c.Activated == nil {
				c.Activated = map[string]Activation{}
			}
			c.Activated[p.Name] = a
		}
	}
}

// readActivations reads which strategies were activated, by pool. If there is no file, it returns none.
func readActivations(dir string) (map[string]Activation, error) {
	data, err := read(filepath.Join(dir, activationsFile), maxActivations)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Activation{}, nil
	}
	if err != nil {
		return nil, err
	}
	var f struct{ Pools map[string]Activation }
	if err := toml.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", activationsFile, err)
	}
	if f.Pools == nil {
		f.Pools = map[string]Activation{}
	}
	return f.Pools, nil
}

// activating lets one change of an activations file run at a time.
var activating sync.Mutex

// ChangeActivations rewrites which strategies are activated: change gets the activations by pool. The next Load takes
// them up.
func ChangeActivations(dir string, change func(all map[string]Activation)) error {
	activating.Lock()
	defer activating.Unlock()
	all, err := readActivations(dir)
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	change(all)
	if maps.Equal(before, all) {
		return nil
	}
	var text bytes.Buffer
	text.WriteString("# Written by warmpath's admin API: who serves a pool instead of whom the configuration names.\n")
	if err := toml.NewEncoder(&text).Encode(map[string]any{"pools": all}); err != nil {
		return err
	}
	return WriteWhole(filepath.Join(dir, activationsFile), text.Bytes())
}

// WriteWhole writes a file so that its readers, and a start after a crash, see the old one or the new one.
func WriteWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
