package adapt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// Strategy loads one pool's strategy: the built-in of its name, or the module at its path.
func Strategy(h *host.Host, c *conf.Config, p *conf.Pool) (*host.Strategy, error) {
	return read(h, c, p, false)
}

// Shadow loads the strategy of p, to decide beside the one that serves.
func Shadow(h *host.Host, c *conf.Config, p *conf.Pool) (*host.Strategy, error) {
	return read(h, c, p, true)
}

func read(h *host.Host, c *conf.Config, p *conf.Pool, shadow bool) (*host.Strategy, error) {
	sc := c.StrategyOf(p)
	wrong := func(err error) error { // with the line of the table that names the module
		return conf.Problems{c.StrategyProblem(p, err.Error())}
	}
	wasm, err := plugins.Read(p.Strategy, sc.Path)
	if err != nil {
		return nil, wrong(err)
	}
	s, err := loadStrategy(h, c, p, wasm, shadow)
	if err != nil {
		return nil, wrong(err)
	}
	return s, nil
}

// loadStrategy makes a pool's strategy of a module.
func loadStrategy(h *host.Host, c *conf.Config, p *conf.Pool, wasm []byte, shadow bool) (*host.Strategy, error) {
	sc := c.StrategyOf(p)
	if err := checkSum(p.Strategy, sc.SHA256, wasm); err != nil {
		return nil, err
	}
	return h.Load(context.Background(), p.Strategy, wasm, host.Options{
		Values: c.OptionValues(p), Allow: sc.Allow, Fuel: sc.Fuel,
		MemoryBytes: sc.MemoryMB << 20, PickTime: sc.PickTimeout, Pool: p.Name, Shadow: shadow})
}

// checkSum compares a module with the sum that the file has for it, if it has one.
func checkSum(name, want string, wasm []byte) error {
	got := sha256.Sum256(wasm)
	if want == "" || strings.EqualFold(hex.EncodeToString(got[:]), want) {
		return nil
	}
	return fmt.Errorf("strategy %q is refused: its module has the SHA-256 %x, and strategies.%s.sha256 is %s; put the "+
		"right module there, or correct the sum", name, got, name, strings.ToLower(want))
}

// Strategies are the names of all strategies that a pool could have: the built-ins, and those of the file and of
// server.strategies_dir.
func Strategies(c *conf.Config) []string {
	names := slices.AppendSeq(plugins.Names(), maps.Keys(c.Strategies))
	names = slices.DeleteFunc(names, func(name string) bool { return !c.HasModule(name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// StrategyFor loads a strategy as if the file named it for the pool, without the pool's own options.
func StrategyFor(h *host.Host, c *conf.Config, pool, name string) (*host.Strategy, error) {
	p := conf.DefaultPool()
	p.Name, p.Strategy = pool, name
	return Strategy(h, c, &p)
}
