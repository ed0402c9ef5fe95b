package cli

import (
	"context"

	"github.com/warmpath/warmpath/cache/goredis"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
)

// probeRedis asks the Redis servers of the file for what the router needs of them.
func probeRedis(ctx context.Context, c *conf.Config) (all []probeFinding) {
	asked := map[string]bool{}
	f := func(read func() (string, error), files conf.RedisFiles) {
		url, err := read()
		if err == nil && (url == "" || asked[url]) {
			return
		}
		asked[url] = true
		found := probeFinding{Pool: "[" + files.Table + "]", Worker: "redis", Good: []string{}, Wrong: []string{}}
		secured, bad := goredis.TLS(files.Table, files.CA, files.Cert, files.Key)
		switch {
		case err != nil:
		case bad != nil:
			err = bad
		default:
			err = tier.Check(ctx, url, secured)
		}
		if err != nil {
			found.Wrong = append(found.Wrong, err.Error())
		} else {
			found.Good = append(found.Good, "takes writes, scripts and streams")
		}
		all = append(all, found)
	}
	f(c.Cache.RedisURL, c.Cache.Security())
	f(func() (string, error) { return c.History.RedisURL(&c.Cache) }, c.History.Security(&c.Cache))
	if l2 := &c.KVCache.L2; l2.Enabled && l2.Backend == conf.BackendRedis {
		f(l2.RedisURL, conf.RedisFiles{Table: "kv_cache.l2", CA: l2.TLSCAFile, Cert: l2.TLSCertFile,
			Key: l2.TLSKeyFile})
	}
	return all
}
