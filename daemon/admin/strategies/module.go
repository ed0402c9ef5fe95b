package strategies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/registry"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// StoreKeys and StoreBytes bound what each strategy keeps in the store.
const StoreKeys, StoreBytes = 10_000, 8 << 20

// A file names the built-in strategies, and conf, which checks it, imports nothing of ours.
func init() { conf.Builtins = plugins.Names() }

// modules are the bytes of modules by the names of their strategies, so that each is read once for all pools.
type modules map[string][]byte

// read loads one pool's strategy: the built-in of its name, or the module at its path.
func (m modules) read(h *host.Host, c *conf.Config, p *conf.Pool, shadow bool) (s *host.Strategy, err error) {
	name := p.Strategy.Orders()
	if m[name] == nil {
		m[name], err = bytesOf(c, name, true)
	}
	if err == nil {
		s, err = load(h, c, p, m[name], shadow)
	}
	if err != nil { // with the line of the table that names the module
		return nil, conf.Problems{c.StrategyProblem(p, err.Error())}
	}
	return s, nil
}

// bytesOf returns the module of a strategy: the built-in of its name, the file at its path, or what a registry has. A
// registry is asked only with pull; without it, nil = it was not pulled.
func bytesOf(c *conf.Config, name string, pull bool) ([]byte, error) {
	s := c.Strategies[name]
	if !conf.InRegistry(s.Path) {
		return plugins.Read(name, s.Path)
	}
	from := registry.Source{Ref: s.Path, Secret: s.PullSecret}
	if dir := c.Server.CacheDir(); dir != "" {
		from.Dir = filepath.Join(dir, "pulled")
	}
	wasm := from.Kept()
	if wasm != nil || !pull {
		return wasm, nil
	}
	wasm, err := from.Pull(context.Background())
	if err != nil {
		return nil, fmt.Errorf("strategy %q: %w", name, err)
	}
	return wasm, nil
}

// readFor loads a strategy as if the file named it for the pool, without the pool's own options.
func readFor(h *host.Host, c *conf.Config, pool, name string) (*host.Strategy, error) {
	p := conf.DefaultPool()
	p.Name, p.Strategy = pool, conf.Chain{name}
	return modules{}.read(h, c, &p, false)
}

// load makes a pool's strategy of a module.
func load(h *host.Host, c *conf.Config, p *conf.Pool, wasm []byte, shadow bool) (*host.Strategy, error) {
	sc, name := c.StrategyOf(p), p.Strategy.Orders()
	if sc.SHA256 != "" && !strings.EqualFold(Sum(wasm), sc.SHA256) {
		return nil, fmt.Errorf("strategy %q is refused: its module has the SHA-256 %s, and strategies.%s.sha256 is %s; put "+
			"the right module there, or correct the sum", name, Sum(wasm), name, strings.ToLower(sc.SHA256))
	}
	return h.Load(context.Background(), name, wasm, host.Options{
		Values: c.OptionValues(p), Allow: sc.Allow, Fuel: sc.Fuel,
		MemoryBytes: sc.MemoryMB << 20, PickTime: sc.PickTimeout, Pool: p.Name, Shadow: shadow,
		Reject: !shadow && sc.OnFailure == "reject", Fallback: shadow || sc.OnFailure == "fallback"})
}

// checkLoads loads a module as each pool that it serves would, with the pool's options. A strategy that serves no
// pool is loaded without options. It returns the last one: until that is closed, the module need not be compiled again.
func checkLoads(h *host.Host, c *conf.Config, name string, wasm []byte) (last *host.Strategy, err error) {
	var as []*conf.Pool
	for i := range c.Pools {
		p := &c.Pools[i]
		for _, v := range services(c, p, name) {
			if v.As == asLive {
				as = append(as, p)
			} else {
				as = append(as, conf.ServedBy(p, name))
			}
		}
	}
	if len(as) == 0 {
		p := conf.DefaultPool()
		as = append(as, conf.ServedBy(&p, name))
	}
	for _, p := range as {
		s, err := load(h, c, p, wasm, false)
		if last != nil {
			last.Close(context.Background())
		}
		if err != nil && p.Name != "" {
			return nil, fmt.Errorf("pool %q: %w", p.Name, err)
		}
		if err != nil {
			return nil, err
		}
		last = s
	}
	return last, nil
}

// Sum is the SHA-256 of a module, in hex.
func Sum(wasm []byte) string {
	s := sha256.Sum256(wasm)
	return hex.EncodeToString(s[:])
}
