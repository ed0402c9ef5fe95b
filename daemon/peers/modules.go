package peers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Module is a strategy's module that an operator pushed to another router.
type Module struct {
	Name   string
	At     time.Time // of the push
	SHA256 string
	Fetch  func() ([]byte, error)
}

// modulesEvery is how often a router looks for modules that were pushed to others.
const modulesEvery = 2 * time.Second

// SharesModules reports whether routers push to each other. They do so only if the operator has set a secret. Without
// one, the routers use a secret that they keep in Redis, and everybody who may write to Redis could bring a module.
func (p *Peers) SharesModules() bool { return p != nil && p.conf.Secret != "" }

// PushModule stores a module for the other routers. If wasm is empty, it removes the name; the other routers keep the
// module that they have.
func (p *Peers) PushModule(name string, wasm []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), replayTimeout)
	defer cancel()
	_, err := p.link.c.Pipelined(ctx, func(r redis.Pipeliner) error {
		if wasm == nil {
			r.HDel(ctx, p.link.modules(), name)
			r.Del(ctx, p.link.module(name))
			return nil
		}
		r.Set(ctx, p.link.module(name), wasm, 0)
		sum := fmt.Sprintf("%x", sha256.Sum256(wasm))
		r.HSet(ctx, p.link.modules(), name, p.moduleLine(name, time.Now().UnixMilli(), sum))
		return nil
	})
	if err != nil {
		return p.link.wrapError(err)
	}
	return nil
}

// moduleLine returns the line about a module: its time, its sum, and a sign of the shared secret for both and the name.
func (p *Peers) moduleLine(name string, at int64, sum string) string {
	sign := hmac.New(sha256.New, []byte("warmpath module "+p.conf.Secret))
	fmt.Fprintf(sign, "%s %d %s", name, at, sum)
	return fmt.Sprintf("%d %s %s", at, sum, hex.EncodeToString(sign.Sum(nil)))
}

// RunModules calls take for the modules that were pushed to other routers, each version once, until ctx ends. take
// returns false to be called again.
func (p *Peers) RunModules(ctx context.Context, take func(m *Module) bool) {
	if !p.SharesModules() {
		return
	}
	taken := map[string]string{}
	for ; ctx.Err() == nil; wait(ctx, modulesEvery) {
		all, err := p.link.c.HGetAll(ctx, p.link.modules()).Result()
		if err != nil {
			continue // health logs that Redis is away
		}
		for name, line := range all {
			at, rest, _ := strings.Cut(line, " ")
			sum, _, _ := strings.Cut(rest, " ")
			ms, _ := strconv.ParseInt(at, 10, 64)
			if taken[name] == line || !hmac.Equal([]byte(line), []byte(p.moduleLine(name, ms, sum))) {
				continue
			}
			if take(&Module{Name: name, At: time.UnixMilli(ms), SHA256: sum, Fetch: func() ([]byte, error) {
				ctx, cancel := context.WithTimeout(ctx, replayTimeout)
				defer cancel()
				return p.link.c.Get(ctx, p.link.module(name)).Bytes()
			}}) {
				taken[name] = line
			}
		}
	}
}
