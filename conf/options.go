package conf

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OptionValues returns the options of the pool's strategy: the options under [strategies.NAME], and over them those of
// the pool, each as text (2.5, 10, true).
func (c *Config) OptionValues(p *Pool) map[string]string {
	all := maps.Clone(c.Strategies[p.Strategy.Orders()].Options)
	if all == nil {
		all = make(map[string]any, len(p.Options))
	}
	maps.Copy(all, p.Options)
	values := make(map[string]string, len(all))
	for k, v := range all {
		values[k] = scalarText(v)
	}
	return values
}

// StrategyOf returns the limits and the path of the pool's strategy, with defaults if the file does not name it.
func (c *Config) StrategyOf(p *Pool) Strategy {
	if s, ok := c.Strategies[p.Strategy.Orders()]; ok {
		return s
	}
	return DefaultStrategy()
}

// Files lists the files whose change is a change of the configuration: Path, and the WatchedFiles.
func (c *Config) Files() []string { return append([]string{c.Path}, c.WatchedFiles()...) }

// digest is that of Files as Load found them. ok is false if one of them could not be read, and after Parse.
func (c *Config) digest() (s sum, ok bool) {
	return digestOf(c.Files(), c.sums)
}

// WatchedFiles lists the files other than Path that a reload reads, each once: modules of pools, keys, certificates,
// the operator's token. A pool's workers_file is not among them: a change of workers is no reload.
func (c *Config) WatchedFiles() []string {
	files := []string{c.Server.AdminTokenFile, c.Server.TLSCertFile, c.Server.TLSKeyFile}
	for i := range c.Keys {
		files = append(files, c.Keys[i].File)
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		for _, name := range slices.Concat(p.Strategy, beside(p)) {
			files = append(files, c.modulePath(name), c.Strategies[name].PullSecret)
		}
		files = append(files, p.WorkerKeyFile, p.TLSCAFile)
	}
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(files, func(path string) bool {
		known := seen[path]
		seen[path] = true
		return known
	})
}

// Registry begins the path of a module in a container registry.
const Registry = "oci://"

// InRegistry reports whether the path of a module names one in a container registry.
func InRegistry(path string) bool { return strings.HasPrefix(path, Registry) }

// modulePath returns where the strategy's module is, or where server.strategies_dir would have it. It is "" for a
// built-in, and for one in a registry, which does not change.
func (c *Config) modulePath(name string) string {
	if InRegistry(c.Strategies[name].Path) {
		return ""
	}
	if c.HasModule(name) || c.Server.StrategiesDir == "" {
		return c.Strategies[name].Path
	}
	return c.Server.StoredPath(name)
}

// beside lists a pool's shadow and canary strategies, each once.
func beside(p *Pool) []string {
	var names []string
	for _, s := range p.Shadow {
		names = append(names, s.Strategy)
	}
	for _, c := range p.Canary {
		names = append(names, c.Strategy)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// StoredPath is where server.strategies_dir has the module of that name.
func (s *Server) StoredPath(name string) string { return filepath.Join(s.StrategiesDir, name+".wasm") }

// HasModule reports whether there is code for a strategy. There is none for one that the file names before its module
// has come to server.strategies_dir.
func (c *Config) HasModule(name string) bool {
	return c.Strategies[name].Path != "" || slices.Contains(Builtins, name)
}

// CacheDir is where compiled modules are kept: module_cache, else warmpath in the user's cache folder. "off", or a
// system without such a folder, is the empty string: nothing is kept.
func (s *Server) CacheDir() string {
	switch s.ModuleCache {
	case "off":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "warmpath")
	}
	return s.ModuleCache
}

// scalarText writes a value as TOML would, but a string without quotes. Values other than scalars do not pass the
// schema.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	panic("BUG: conf: an option that is no scalar passed the schema")
}
