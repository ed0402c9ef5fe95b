package conf

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func checkL2(r *report, kv *KVCache) {
	c := &kv.L2
	const at = "kv_cache.l2"
	r.oneOf(at+".backend", c.Backend, BackendRedis, BackendPool)
	r.oneOf(at+".write", c.Write, "behind", "through")
	r.oneOf(at+".promote", c.Promote, "always", "second", "never")
	if !within(c.Timeout, 10*time.Millisecond, 10*time.Second) {
		r.outOfRange(at+".timeout", c.Timeout, `write how long a server may be silent, from "10ms" to "10s"`)
	}
	r.notNegative(at+".ttl", c.TTL, "for none")
	if c.QueueBytes != 0 {
		r.between(at+".queue_bytes", c.QueueBytes, 1<<20, kv.MaxBytes/2, "bytes, half of max_bytes at most,")
	}
	if len(c.Prefix) > 128 {
		r.add(at+".prefix", "it is longer than 128 bytes", "keep it short: it stands before every key")
	}
	checkAuthorities(r, at+".tls_ca_file", c.TLSCAFile)
	checkCertificate(r, at, c.TLSCertFile, c.TLSKeyFile)
	checkMembers(r, c)
	switch {
	case !kv.L1 && !c.Enabled:
		r.add("kv_cache.l1", "it is false without an L2", "set kv_cache.l2.enabled = true, or leave l1 on")
	case !c.Enabled:
	case !kv.Open():
		r.add(at+".enabled", "the KV cache has no listener, so nothing reaches it",
			`give kv_cache.resp, as "0.0.0.0:6380", or kv_cache.hyperpod`)
	case c.Backend == BackendRedis:
		checkL2URL(r, c)
	case c.Backend == BackendPool:
		checkPoolOf(r, kv)
	}
}

func checkL2URL(r *report, c *L2) {
	const at = "kv_cache.l2.url"
	path, text := either(r, at, c.URL, at+"_file", c.URLFile)
	if text == "" && c.URLFile != "" {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" {
		r.add(path, "it is no URL of a Redis", `write "redis://HOST:PORT/DB", "rediss://USER:PASSWORD@HOST:PORT", `+
			`"redis://SENTINEL:PORT?master_name=NAME&addr=SENTINEL2:PORT" or "redis://NODE:PORT?cluster=true&addr=NODE2:PORT"`)
		return
	}
	if u.Scheme == "redis" && c.TLSCAFile+c.TLSCertFile != "" {
		r.add(path, noTLS(u.Scheme), "write rediss://, or leave those files out")
	}
}

// checkPoolOf checks what daemons need to reach each other.
func checkPoolOf(r *report, kv *KVCache) {
	c := &kv.L2
	if kv.RESP == "" {
		r.add("kv_cache.l2.backend", "tieredstorage has no Redis listener: daemons reach each other there",
			`give kv_cache.resp, as "0.0.0.0:6380"`)
	}
	if len(c.Members) == 0 && c.MembersDNS == "" {
		r.add("kv_cache.l2.members", "tieredstorage has no member",
			`list the kv_cache.resp of each daemon, this one too, as ["10.0.0.1:6380", "10.0.0.2:6380"], or give members_dns`)
	}
	if c.URL != "" || c.URLFile != "" {
		r.add("kv_cache.l2.url", "it is of backend redis", `set backend = "redis", or leave url out`)
	}
	if c.TLSCertFile != "" {
		r.add("kv_cache.l2.tls_cert_file", "it is of backend redis: the members' listeners ask for no certificate",
			`set backend = "redis", or leave it out`)
	}
}

func checkMembers(r *report, c *L2) {
	const at = "kv_cache.l2.members"
	seen := map[string]string{}
	for i, m := range c.Members {
		path := elem(at, i)
		if r.lines[path] == 0 {
			path = at
		}
		if !isMember(m) {
			r.add(path, fmt.Sprintf("%.80q is no HOST:PORT of a daemon", m), `write as "10.0.0.1:6380"`)
			continue
		}
		r.unique(seen, m, path, "list each daemon once")
	}
	if c.MembersDNS != "" {
		checkDNSName(r, at+"_dns", c.MembersDNS)
	}
	if c.Self != "" && !isMember(c.Self) {
		r.add("kv_cache.l2.self", fmt.Sprintf("%.80q is no HOST:PORT", c.Self),
			`write as it stands in members: "10.0.0.1:6380"`)
	}
}

// isMember reports whether s is an address at which others can reach a daemon.
func isMember(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && host != "" && !strings.ContainsAny(s, "/ ") && isPort(port)
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n <= 65535
}
