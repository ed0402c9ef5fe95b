package conf

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// KVCache is the workers' KV cache: a store of large values, and the doors at which LMCache reaches it. No memory is
// taken while it has no listener.
type KVCache struct {
	L1       bool   `toml:"l1" reload:"restart"`           // memory keeps what an L2 has, too
	MaxBytes int    `toml:"max_bytes" reload:"restart"`    // of memory: values, their keys and records
	Policy   string `toml:"policy" reload:"restart"`       // lru | s3fifo | fifo
	RESP     string `toml:"resp" reload:"restart"`         // HOST:PORT of the Redis listener; "" = none
	HyperPod string `toml:"hyperpod" reload:"restart"`     // HOST:PORT of the HyperPod listener; "" = none
	Segment  string `toml:"segment" reload:"restart"`      // the memory's name in /dev/shm, for HyperPod's workers
	Mode     string `toml:"segment_mode" reload:"restart"` // of that file, in octal digits

	SpillDir   string `toml:"spill_dir" reload:"restart"`   // folder for what memory evicts; "" = none
	SpillBytes int    `toml:"spill_bytes" reload:"restart"` // of its files together

	User           string `toml:"user" reload:"restart"`            // of AUTH, beside "default"
	PasswordFile   string `toml:"password_file" reload:"restart"`   // holds the password of AUTH; "" = none is asked for
	TLSCertFile    string `toml:"tls_cert_file" reload:"restart"`   // PEM; with TLSKeyFile: TLS at the Redis listener
	TLSKeyFile     string `toml:"tls_key_file" reload:"restart"`    // PEM
	MaxConnections int    `toml:"max_connections" reload:"restart"` // at each door; more are refused

	L2 L2 `toml:"l2"`
}

// L2 is the tier of the KV cache that many daemons share: a Redis, or the memory of the daemons themselves.
type L2 struct {
	Enabled bool   `toml:"enabled" reload:"restart"`
	Backend string `toml:"backend" reload:"restart"` // redis | tieredstorage

	URL         string        `toml:"url" reload:"restart"`           // of the Redis
	URLFile     string        `toml:"url_file" reload:"restart"`      // or a file that holds it, for one with a password
	Prefix      string        `toml:"prefix" reload:"restart"`        // of the keys there
	TLSCAFile   string        `toml:"tls_ca_file" reload:"restart"`   // who signs the servers' certificates
	TLSCertFile string        `toml:"tls_cert_file" reload:"restart"` // PEM; for a Redis that asks for one
	TLSKeyFile  string        `toml:"tls_key_file" reload:"restart"`  // PEM
	TTL         time.Duration `toml:"ttl" reload:"restart"`           // of values put without one; 0 = none

	Members    []string `toml:"members"`                      // tieredstorage: HOST:PORT of each daemon's Redis listener
	MembersDNS string   `toml:"members_dns"`                  // or name:port, each address of which is one
	Self       string   `toml:"self" reload:"restart"`        // which of them this one is; "" = found by its addresses
	Write      string   `toml:"write" reload:"restart"`       // behind | through
	QueueBytes int      `toml:"queue_bytes" reload:"restart"` // of values on their way there; 0 = a quarter of max_bytes

	Promote string        `toml:"promote" reload:"restart"` // always | second | never
	Timeout time.Duration `toml:"timeout" reload:"restart"` // of a server's silence
}

// The values of L2.Backend.
const (
	BackendRedis = "redis"
	BackendPool  = "tieredstorage"
)

func defaultL2() L2 {
	return L2{Backend: BackendPool, Prefix: "warmpath:kv:", Members: []string{}, Write: "behind", Promote: "always",
		Timeout: 500 * time.Millisecond}
}

// RedisURL reads the URL of the Redis, now: its own, or the file's. An error never shows it.
func (c *L2) RedisURL() (string, error) {
	return redisURL("kv_cache.l2.url_file", c.URL, c.URLFile)
}

// Policies are the names of what chooses the values that make room, the default first.
var Policies = []string{"lru", "s3fifo", "fifo"}

func defaultKVCache() KVCache {
	return KVCache{
		L1:             true,
		L2:             defaultL2(),
		MaxBytes:       4 << 30,
		Policy:         Policies[0],
		SpillBytes:     64 << 30,
		Segment:        "shared_memory", // LMCache's default
		Mode:           "0660",
		MaxConnections: 2048, // a worker's LMCache opens up to 150
	}
}

// minKVCache holds a few values of the usual megabytes: less is a mistake.
const minKVCache = 16 << 20

// Open reports whether the cache has a door.
func (c *KVCache) Open() bool { return c.RESP != "" || c.HyperPod != "" }

// Connections is how many the open doors have together at most.
func (c *KVCache) Connections() (n int) {
	for _, door := range []string{c.RESP, c.HyperPod} {
		if door != "" {
			n += c.MaxConnections
		}
	}
	return n
}

// FileMode is Mode as a number.
func (c *KVCache) FileMode() os.FileMode {
	n, _ := strconv.ParseUint(c.Mode, 8, 32) // it is checked
	return os.FileMode(n)
}

// Password reads the password of the Redis listener, now; "" if none is asked for. An error never shows it.
func (c *KVCache) Password() (string, error) {
	if c.PasswordFile == "" {
		return "", nil
	}
	s, f := secret(c.PasswordFile, "", minClientKey)
	if f != nil {
		return "", fmt.Errorf("conf: kv_cache.password_file: %s; %s", f.what, f.remedy)
	}
	return s, nil
}

func checkKVCache(r *report, c *KVCache) {
	r.between("kv_cache.max_bytes", c.MaxBytes, minKVCache, 64<<40, "bytes")
	r.oneOf("kv_cache.policy", c.Policy, Policies...)
	r.between("kv_cache.max_connections", c.MaxConnections, 1, maxCount, "connections")
	if c.RESP != "" {
		checkAddress(r, "kv_cache.resp", c.RESP)
	}
	if c.HyperPod != "" {
		checkAddress(r, "kv_cache.hyperpod", c.HyperPod)
	}
	r.between("kv_cache.spill_bytes", c.SpillBytes, 64<<20, 64<<40, "bytes")
	checkFolder(r, "kv_cache.spill_dir", c.SpillDir)
	r.name("kv_cache.segment", c.Segment)
	if n, err := strconv.ParseUint(c.Mode, 8, 32); err != nil || n&^0o666 != 0 || n&0o600 != 0o600 {
		r.add("kv_cache.segment_mode", fmt.Sprintf("%.20q is no mode of a file that its owner can use", c.Mode),
			`write "0600", "0660" or "0666": workers must be able to read and write`)
	}
	if c.PasswordFile != "" {
		if _, f := secret(c.PasswordFile, "", minClientKey); f != nil {
			r.add("kv_cache.password_file", f.what, f.remedy)
		}
	} else if c.User != "" {
		r.add("kv_cache.user", "it stands without password_file", "give both, or neither")
	}
	checkCertificate(r, "kv_cache", c.TLSCertFile, c.TLSKeyFile)
}
