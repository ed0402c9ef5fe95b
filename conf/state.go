package conf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cache is where the router keeps its own small state: session bindings, and what strategies remember.
type Cache struct {
	Redis        string        `toml:"redis" reload:"restart"`          // URL of a second tier; "" = memory alone
	RedisURLFile string        `toml:"redis_url_file" reload:"restart"` // or a file with the URL, if it has a password
	TLSCAFile    string        `toml:"tls_ca_file" reload:"restart"`    // who signs the Redis's certificate
	TLSCertFile  string        `toml:"tls_cert_file" reload:"restart"`  // PEM; for a Redis that asks for one
	TLSKeyFile   string        `toml:"tls_key_file" reload:"restart"`   // PEM
	MaxBytes     int           `toml:"max_bytes" reload:"restart"`      // of memory, in all
	Timeout      time.Duration `toml:"timeout" reload:"restart"`        // of a request's time that Redis may take
}

// Sessions is what makes requests one session, and how long it lasts.
type Sessions struct {
	Identity     []string      `toml:"identity"`              // fields of the header, and of the body, that name a session
	Bind         string        `toml:"bind"`                  // strategy | always
	Cookie       string        `toml:"cookie"`                // the name of a cookie that the router sets; "" = none
	Life         time.Duration `toml:"life" reload:"restart"` // of an opened session, from its opening
	TTL          time.Duration `toml:"ttl" reload:"restart"`  // of any other, from its last use
	OnWorkerDown string        `toml:"on_worker_down"`        // rehome | error
}

// Identities are the fields by which agents name their sessions, in the order of their default: the surest first.
var Identities = []string{"X-Warmpath-Session-Id", "X-Dynamo-Session-ID", "X-Claude-Code-Session-Id", "Thread-Id",
	"Session-Id", "Session_id", "X-Session-Affinity", "X-Session-Id", "body.prompt_cache_key", "body.session_id",
	"body.vllm_xargs.agentic_context.program_id", "body.user", "body.metadata.user_id", "body.safety_identifier"}

// ofBody begins the identities that are fields of the body.
const ofBody = "body."

// maxIdentities bounds a list of them: each is looked for in each request.
const maxIdentities = 32

func defaultCache() Cache { return Cache{MaxBytes: 64 << 20, Timeout: 5 * time.Millisecond} }

func defaultSessions() Sessions {
	return Sessions{
		Identity:     slices.Clone(Identities),
		Bind:         "strategy",
		Life:         20 * time.Minute, // SageMaker's
		TTL:          30 * time.Minute,
		OnWorkerDown: "rehome",
	}
}

// RedisURL reads the URL of the second tier, now: its own, or the file's; "" if there is none. An error never shows it.
func (c *Cache) RedisURL() (string, error) {
	return redisURL("cache.redis_url_file", c.Redis, c.RedisURLFile)
}

// Security returns the files of TLS with the Redis.
func (c *Cache) Security() RedisFiles {
	return RedisFiles{Table: "cache", CA: c.TLSCAFile, Cert: c.TLSCertFile, Key: c.TLSKeyFile}
}

// minCache holds some 2,000 sessions in each of a few namespaces: less is a mistake.
const minCache = 1 << 20

func checkCache(r *report, c *Cache) {
	path, s := either(r, "cache.redis", c.Redis, "cache.redis_url_file", c.RedisURLFile)
	if s != "" {
		checkRedis(r, path, s)
	}
	checkRedisFiles(r, c.Security(), path, s)
	r.between("cache.max_bytes", c.MaxBytes, minCache, 64<<30, "bytes")
	if !within(c.Timeout, time.Millisecond, time.Second) {
		r.outOfRange("cache.timeout", c.Timeout, `write how long a request may wait for Redis, from "1ms" to "1s"`)
	}
}

func checkSessions(r *report, s *Sessions) {
	checkIdentities(r, s.Identity)
	r.oneOf("sessions.bind", s.Bind, "strategy", "always")
	checkToken(r, "sessions.cookie", s.Cookie)
	if !within(s.Life, time.Second, 24*time.Hour) {
		r.outOfRange("sessions.life", s.Life, `write from "1s" to "24h"`)
	}
	if s.TTL < time.Second {
		r.outOfRange("sessions.ttl", s.TTL, `write how long, at least "1s", as "30m"`)
	}
	r.oneOf("sessions.on_worker_down", s.OnWorkerDown, "rehome", "error")
}

// checkIdentities checks the names of header fields, and that those of the body are known.
func checkIdentities(r *report, list []string) {
	known := slices.DeleteFunc(slices.Clone(Identities), func(s string) bool { return !strings.HasPrefix(s, ofBody) })
	for i, name := range list {
		switch at := elem("sessions.identity", i); {
		case i >= maxIdentities:
			r.add(at, fmt.Sprintf("these are more than %d", maxIdentities), "leave out what no client sends")
			return
		case strings.HasPrefix(name, ofBody):
			r.oneOf(at, name, known...)
		case name == "":
			r.add(at, "it is empty", "name a header field, or take it out")
		case strings.Contains(name, ":"):
			_, field, _ := strings.Cut(name, ":")
			r.add(at, fmt.Sprintf("%.80q is no name", name), fmt.Sprintf("write %q, the header field's name alone", field))
		default:
			checkToken(r, at, name)
		}
	}
}

// checkToken checks the name of a header field or a cookie (RFC 9110, section 5.6.2); "" is none.
func checkToken(r *report, path, s string) {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	if len(s) > 64 || strings.Trim(s, safe) != "" {
		r.add(path, fmt.Sprintf("%.80q is no name", s),
			`write up to 64 letters, digits, dashes or underscores, or "" for none`)
	}
}
