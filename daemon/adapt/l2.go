package adapt

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
)

// l2 returns the tier behind memory and disk, nil if it is off.
func l2(c *conf.KVCache, resolve discover.Resolver) *kvcache.L2 {
	if !c.L2.Enabled {
		return nil
	}
	tier := &kvcache.L2{Memory: c.L1, Prefix: c.L2.Prefix, CAFile: c.L2.TLSCAFile, TTL: c.L2.TTL, Members: Members(c),
		Self: c.L2.Self, Resolve: resolve, Through: c.L2.Write == "through", Queue: int64(c.L2.QueueBytes),
		Promote: c.L2.Promote, Timeout: c.L2.Timeout}
	if c.L2.Backend == conf.BackendRedis {
		tier.Redis = c.L2.RedisURL
		tier.CertFile, tier.KeyFile = c.L2.TLSCertFile, c.L2.TLSKeyFile
	}
	return tier
}

// Members returns the daemons that share their memory with this one.
func Members(c *conf.KVCache) kvcache.Members {
	return kvcache.Members{List: c.L2.Members, Name: c.L2.MembersDNS}
}
