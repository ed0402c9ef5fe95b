package conf

import (
	"fmt"
	"maps"
	"net"
	"slices"
)

// LMCache is the controller that the workers' LMCache registers with, and the coordinator of its multi-process servers.
// A listener whose address is empty is not opened. If no listener has an address, there is neither a controller nor a
// coordinator.
type LMCache struct {
	Pull        string `toml:"pull" reload:"restart"`        // the workers' controller_pull_url
	Reply       string `toml:"reply" reload:"restart"`       // their controller_reply_url
	Heartbeat   string `toml:"heartbeat" reload:"restart"`   // sent to them when they register
	Advertise   string `toml:"advertise" reload:"restart"`   // host by which they reach it; "" = as they reached reply
	Coordinator string `toml:"coordinator" reload:"restart"` // HTTP; the servers' --coordinator-url

	Hash      string            `toml:"hash" reload:"restart"`       // pre_caching_hash_algorithm, or auto
	ChunkSize int               `toml:"chunk_size" reload:"restart"` // tokens; 0 = found out
	HashSeed  int               `toml:"hash_seed" reload:"restart"`  // PYTHONHASHSEED of the workers
	Instances map[string]string `toml:"instances" reload:"restart"`  // lmcache_instance_id -> id of the worker
}

// LMCacheHashes are the values of lmcache.hash.
var LMCacheHashes = []string{"auto", "builtin", "sha256", "sha256_cbor", "blake3"}

func defaultLMCache() LMCache { return LMCache{Hash: "auto", Instances: map[string]string{}} }

// On reports whether anything of it listens.
func (l *LMCache) On() bool { return l.Pull+l.Reply+l.Heartbeat+l.Coordinator != "" }

// maxLMCacheChunk is far above LMCache's 256.
const maxLMCacheChunk = 13_000

func checkLMCache(r *report, l *LMCache) {
	for _, a := range []struct{ key, addr string }{{"pull", l.Pull}, {"reply", l.Reply}, {"heartbeat", l.Heartbeat},
		{"coordinator", l.Coordinator}} {
		if a.addr != "" {
			checkAddress(r, child("lmcache", a.key), a.addr)
		}
	}
	if l.Pull == "" && l.Reply+l.Heartbeat != "" {
		r.add("lmcache.pull", "it is not there, but reply or heartbeat is", "give pull too: it is where workers report")
	}
	if l.Advertise != "" && !isHost(l.Advertise) && net.ParseIP(l.Advertise) == nil {
		r.add("lmcache.advertise", fmt.Sprintf("%.80q is no host", l.Advertise), `write a name or an address, as "10.0.0.1"`)
	}
	r.oneOf("lmcache.hash", l.Hash, LMCacheHashes...)
	r.between("lmcache.chunk_size", l.ChunkSize, 0, maxLMCacheChunk,
		"tokens, as the workers have it, or 0 to find it out,")
	r.between("lmcache.hash_seed", l.HashSeed, 0, 1<<32-1, "PYTHONHASHSEED of the workers")
	for _, id := range slices.Sorted(maps.Keys(l.Instances)) {
		if path := child("lmcache.instances", id); l.Instances[id] == "" || len(id) > 256 {
			r.add(path, "it names no worker", `write "lmcache_instance_id" = "id of the worker"`)
		}
	}
}
