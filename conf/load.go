package conf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxFile bounds the configuration: 10,000 workers are 600 KB.
const maxFile = 4 << 20

// Load reads and checks the file. Its error is a Problems unless the file cannot be read. If Load returns a Config with
// an error, only its Files may be used.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(data, path)
	if err == nil {
		c.sums = sumsOf(c.WatchedFiles())
		c.sums[path] = sha256.Sum256(data) // of what was parsed: the file may be another by now
	}
	return c, err
}

// readFile reads a file of TOML.
func readFile(path string) ([]byte, error) {
	data, err := read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("conf: %w; give the TOML file, readable for this user: see `warmpath check --defaults`", err)
	}
	return data, nil
}

// Parse is Load of a file that was already read. Relative paths in it are resolved against path's folder.
func Parse(data []byte, path string) (*Config, error) {
	r := &report{file: path}
	text, tree, err := parseTree(r, data)
	if err != nil {
		return nil, err
	}
	c := withDefaults(tree)
	c.Path = path
	c.lines = r.lines
	if !r.schema("", tree, reflect.TypeFor[Config]()) {
		return nil, r.err()
	}
	if _, err := toml.Decode(text, c); err != nil {
		return nil, syntaxProblem(r.file, err) // a number out of its type's range
	}
	c.complete(tree)
	addStored(r, c)
	validate(r, c)
	activate(r, c)
	return c, r.err()
}

// parseTree parses the document. It gives the report the lines of its keys.
func parseTree(r *report, data []byte) (text string, tree map[string]any, err error) {
	text = strings.TrimPrefix(string(data), "\ufeff")
	located := inForce.locate(text)
	if located.what != "" {
		const remedy = "a configuration needs a hundredth of that; is this the right file, and whole?"
		return "", nil, Problems{{File: r.file, Line: located.over, What: located.what, Remedy: remedy}}
	}
	if _, err := toml.Decode(text, &tree); err != nil {
		if form := formOf(text); form != "" {
			return "", nil, Problems{{File: r.file, Line: 1, What: "this is " + form + ", and not TOML",
				Remedy: "write [server] and below it key = value; `warmpath check --defaults` prints every key"}}
		}
		return "", nil, syntaxProblem(r.file, err)
	}
	r.lines = located.lines
	return text, tree, nil
}

// alreadyThere matches the library's words for a key with a value that is opened as a list of tables.
var alreadyThere = regexp.MustCompile(`^Key '(.*)' was already created and cannot be used as an array`)

// syntaxProblem turns the library's error into a Problems.
func syntaxProblem(file string, err error) error {
	p := Problem{
		File:   file,
		What:   strings.TrimPrefix(err.Error(), "toml: "),
		Remedy: `correct the TOML: text stands in "quotes", each key once`,
	}
	if perr, ok := errors.AsType[toml.ParseError](err); ok {
		p.Line = perr.Position.Line
		p.Key = perr.LastKey
		p.What = perr.Message
		if m := alreadyThere.FindStringSubmatch(p.What); m != nil {
			p.What = fmt.Sprintf("%s has a value already, and [[%s]] begins a list of tables", m[1], m[1])
			p.Remedy = "write it once; names for models are [[models]], outside of [[pools]]"
		}
	}
	return Problems{p}
}

// withDefaults returns the configuration that the file is decoded over. The library keeps what stands in a slice that
// is long enough, so each element starts as its default and a key that is absent from the file keeps it.
func withDefaults(tree map[string]any) *Config {
	c := Default()
	pools := tables(tree["pools"])
	c.Pools = make([]Pool, len(pools))
	for i, p := range pools {
		c.Pools[i] = DefaultPool()
		c.Pools[i].Workers = defaultWorkers(p["workers"])
		if n := len(tables(p["shadow"])); n > 0 {
			c.Pools[i].Shadow = slices.Repeat([]Shadow{defaultShadow()}, n)
		}
	}
	c.Models = make([]Model, len(tables(tree["models"])))
	for i, m := range tables(tree["models"]) {
		c.Models[i].To = slices.Repeat([]Target{{Weight: 1}}, len(tables(m["to"])))
	}
	c.Keys = make([]Key, len(tables(tree["keys"])))
	for i := range c.Keys {
		c.Keys[i] = DefaultKey()
	}
	return c
}

// tables returns an array of tables in either of TOML's spellings, or nil if v is none: the schema reports that.
func tables(v any) []map[string]any {
	switch v := v.(type) {
	case []map[string]any:
		return v
	case []any:
		list := make([]map[string]any, len(v))
		for i := range v {
			list[i], _ = v[i].(map[string]any)
		}
		return list
	}
	return nil
}

// complete fills in what depends on other keys: names, ids, addresses, paths; and the defaults of map entries, which
// the library starts from zero.
func (c *Config) complete(tree map[string]any) {
	s := &c.Server
	s.AdminTokenFile = c.resolve(s.AdminTokenFile)
	s.TLSCertFile = c.resolve(s.TLSCertFile)
	s.TLSKeyFile = c.resolve(s.TLSKeyFile)
	s.StateFile = c.resolve(s.StateFile)
	s.StrategiesDir = c.resolve(s.StrategiesDir)
	s.OverflowDir = c.resolve(s.OverflowDir)
	if s.ModuleCache != "off" {
		s.ModuleCache = c.resolve(s.ModuleCache)
	}
	if s.AccessLog != "stdout" && s.AccessLog != "stderr" {
		s.AccessLog = c.resolve(s.AccessLog)
	}
	server, _ := tree["server"].(map[string]any)
	if _, written := server["buffer_body_bytes"]; !written {
		s.BufferBody = min(s.BufferBody, s.MaxBodyBytes)
	}
	for _, file := range []*string{&c.Cache.RedisURLFile, &c.Cache.TLSCAFile, &c.Cache.TLSCertFile, &c.Cache.TLSKeyFile,
		&c.History.RedisURLFile, &c.History.TLSCAFile, &c.History.TLSCertFile, &c.History.TLSKeyFile, &c.History.SecretFile} {
		*file = c.resolve(*file)
	}
	kv := &c.KVCache
	kv.SpillDir = c.resolve(kv.SpillDir)
	kv.PasswordFile = c.resolve(kv.PasswordFile)
	kv.TLSCertFile = c.resolve(kv.TLSCertFile)
	kv.TLSKeyFile = c.resolve(kv.TLSKeyFile)
	kv.L2.URLFile = c.resolve(kv.L2.URLFile)
	kv.L2.TLSCAFile = c.resolve(kv.L2.TLSCAFile)
	kv.L2.TLSCertFile = c.resolve(kv.L2.TLSCertFile)
	kv.L2.TLSKeyFile = c.resolve(kv.L2.TLSKeyFile)
	for i := range c.Keys {
		c.Keys[i].File = c.resolve(c.Keys[i].File)
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Name == "" {
			p.Name = "pool" + strconv.Itoa(i+1)
		}
		p.WorkersFile = c.resolve(p.WorkersFile)
		p.WorkerKeyFile = c.resolve(p.WorkerKeyFile)
		p.TLSCAFile = c.resolve(p.TLSCAFile)
		p.Kubernetes.Account = c.resolve(p.Kubernetes.Account)
		for j := range p.Workers {
			p.Workers[j].complete()
		}
	}
	c.completeStrategies(tree)
}

func (c *Config) completeStrategies(tree map[string]any) {
	written, _ := tree["strategies"].(map[string]any)
	for name, s := range c.Strategies {
		keys, _ := written[name].(map[string]any)
		if _, ok := keys["fuel"]; !ok {
			s.Fuel = DefaultStrategy().Fuel
		}
		if _, ok := keys["pick_timeout"]; !ok {
			s.PickTimeout = DefaultStrategy().PickTimeout
		}
		if _, ok := keys["memory_mb"]; !ok {
			s.MemoryMB = DefaultStrategy().MemoryMB
		}
		if !InRegistry(s.Path) {
			s.Path = c.resolve(s.Path)
		}
		s.PullSecret = c.resolve(s.PullSecret)
		c.Strategies[name] = s
	}
}

// DefaultID names a worker by its URL without showing it: "w-" and 24 bits of FNV-1a. A number by order would give
// another worker's name, metrics and sessions to a worker when one before it is removed.
func DefaultID(url string) string {
	h := fnv.New32a()
	h.Write([]byte(url))
	return fmt.Sprintf("w-%06x", h.Sum32()&0xffffff)
}

// resolve makes a path in the file independent of the folder the process runs in.
func (c *Config) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.Path), path)
}
