package adapt

import (
	"fmt"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/front"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// Limits returns what the keys of a configuration may take, by their names.
func Limits(c *conf.Config) map[string]limit.Limits {
	all := make(map[string]limit.Limits, len(c.Keys))
	for _, k := range c.Keys {
		all[k.Name] = limit.Limits{InFlight: k.MaxInFlight, Requests: k.Requests, Tokens: k.Tokens, Cached: k.Count == "all"}
	}
	return all
}

// Epoch makes the clients' side of a configuration. Its pools are added when they are there.
func Epoch(c *conf.Config) (*front.Epoch, error) {
	keys := make([]gate.Key, 0, len(c.Keys))
	for _, k := range c.Keys {
		secret, err := k.Secret()
		if err != nil {
			return nil, fmt.Errorf("daemon: %w", err)
		}
		keys = append(keys, gate.Key{Name: k.Name, Secret: secret, Models: k.Models, Explain: k.Explain,
			Workers: k.Fence(), Salt: k.CacheSalt.Of(k.Name, secret), Priority: [2]int(k.Priority), Weight: k.Weight,
			SocketLife: k.WebsocketLife})
	}
	aliases := make([]names.Alias, 0, len(c.Models))
	for _, m := range c.Models {
		a := names.Alias{Name: m.Name, Hidden: m.Hidden, Fallback: m.Fallback, On: names.ReasonsOf(m.On)}
		for _, t := range m.To {
			a.Targets = append(a.Targets, names.Target(t))
		}
		aliases = append(aliases, a)
	}
	s, n := &c.Server, &c.Sessions
	return &front.Epoch{
		Epoch: epoch.Epoch{
			Sessions: epoch.Naming{Identity: identity.New(n.Identity), Cookie: n.Cookie, Always: n.Bind == "always",
				EndWithWorker: n.OnWorkerDown == "error"},
			Overflow: overflow.Limits{Dir: s.OverflowDir, Most: int64(s.OverflowBytes)},
			Names:    names.New(aliases),
			Keys:     gate.NewKeys(keys), Explain: s.Explain, Access: s.AccessLog != "", Deadline: s.DeadlineHeader,
			Log: epoch.ExplainLog{Share: s.ExplainLog.Share, Slower: s.ExplainLog.Slower},
		},
		CORS: gate.NewCORS(s.CORSOrigins), RootPaths: s.RootPaths, MaxBody: s.MaxBodyBytes,
		BufferBody: min(s.BufferBody, s.MaxBodyBytes), MaxInFlight: s.MaxInFlight,
		ReadTimeout: s.ReadTimeout, IdleTimeout: s.IdleTimeout, Keepalive: s.Keepalive,
		SocketIdle: s.WebsocketIdle,
	}, nil
}
