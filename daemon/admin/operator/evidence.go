package operator

import (
	"cmp"
	"errors"
	"io/fs"
	"net"
	"os"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/limit"
)

// evidence is what the warnings are made of.
type evidence struct {
	*Overview
	lacking  map[string]float64 // by pool: requests refused lately as all workers were full or none was up
	store    tier.L2Stats       // of the Redis of [cache]
	peers    peers.Stats
	l2       *remote.Stats // of the KV cache; nil = it has none
	short    int64         // bytes of spill_bytes that the disk has no room for
	gone     bool          // the configuration's file
	limits   []limit.Stats // of keys
	trends   *trends
	commands commands
}

// commands are the flags that an operator's commands need.
type commands struct{ file, admin, address string }

// status is a command of warmpath that asks this process.
func (c commands) status(command string) string { return "warmpath " + command + c.admin }

// check is warmpath check of the file in force.
func (c commands) check(flags string) string {
	return "warmpath check" + flags + " --config " + cmp.Or(c.file, "FILE")
}

// newEvidence gathers it, with the commands for the listener at addr. The pools of o are there already.
func newEvidence(o *Overview, c *Config, t *trends, addr string) *evidence {
	e := &evidence{Overview: o, lacking: map[string]float64{}, store: c.Store.Stats().L2, peers: c.Peers.Stats(),
		trends: t, limits: c.Limits.Counts(o.Now),
		commands: commands{file: o.Reload.File, admin: adminFlags(addr, c.AdminTokenFile), address: addr}}
	for i := range o.Pools {
		name := o.Pools[i].Name
		answers, _ := c.Metrics.recent.lacking(name, o.Now)
		e.lacking[name] = answers.refused
	}
	if _, err := os.Stat(o.Reload.File); o.Reload.File != "" {
		e.gone = errors.Is(err, fs.ErrNotExist)
	}
	if kv, open := c.KVCache.Stats(); open {
		e.l2 = kv.L2
		if kv.Spill != nil {
			e.short = kv.Spill.Short
		}
	}
	return e
}

// adminFlags are those by which a command finds this process, on this machine.
func adminFlags(addr, tokenFile string) (flags string) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	if addr != "127.0.0.1:9090" {
		flags = " --admin " + addr
	}
	if tokenFile != "" {
		flags += " --token-file " + tokenFile
	}
	return flags
}
