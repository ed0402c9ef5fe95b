package conf

import "fmt"

// History is the history of requests that several routers of the same workers share.
type History struct {
	Redis        string `toml:"redis" reload:"restart"`          // URL; "" = that of Cache, "off" = nothing is shared
	RedisURLFile string `toml:"redis_url_file" reload:"restart"` // or a file with the URL, if it has a password
	TLSCAFile    string `toml:"tls_ca_file" reload:"restart"`    // who signs the Redis's certificate
	TLSCertFile  string `toml:"tls_cert_file" reload:"restart"`  // PEM; for a Redis that asks for one
	TLSKeyFile   string `toml:"tls_key_file" reload:"restart"`   // PEM
	SecretFile   string `toml:"secret_file" reload:"restart"`    // the routers' shared secret; "" = made once in Redis
	MaxBytes     int    `toml:"max_bytes" reload:"restart"`      // that Redis keeps of a pool
	Name         string `toml:"name" reload:"restart"`           // of this router, for people; "" = the host's
}

// HistoryOff is the value of history.redis that shares nothing.
const HistoryOff = "off"

func defaultHistory() History { return History{MaxBytes: 64 << 20} }

// minHistory holds a minute of a small fleet: less is a mistake.
const minHistory = 1 << 20

// RedisURL reads the URL of the Redis through which routers share their history, now; "" if they share none. History
// without a URL of its own uses that of c. An error never shows it.
func (h *History) RedisURL(c *Cache) (string, error) {
	switch {
	case h.Redis == HistoryOff:
		return "", nil
	case h.Redis+h.RedisURLFile != "":
		return redisURL("history.redis_url_file", h.Redis, h.RedisURLFile)
	}
	return c.RedisURL()
}

// Security returns the files of TLS with the Redis of RedisURL.
func (h *History) Security(c *Cache) RedisFiles {
	if h.Redis+h.RedisURLFile == "" {
		return c.Security()
	}
	return h.files()
}

func (h *History) files() RedisFiles {
	return RedisFiles{Table: "history", CA: h.TLSCAFile, Cert: h.TLSCertFile, Key: h.TLSKeyFile}
}

// Secret reads the secret that the routers share, now; "" if Redis keeps it. An error never shows it.
func (h *History) Secret() (string, error) {
	if h.SecretFile == "" {
		return "", nil
	}
	s, f := secret(h.SecretFile, "", minHistorySecret)
	if f != nil {
		return "", fmt.Errorf("conf: history.secret_file: %s; %s", f.what, f.remedy)
	}
	return s, nil
}

// minHistorySecret is too long to be guessed by trying; `openssl rand -hex 24` makes a good one.
const minHistorySecret = 16

// shares reports whether routers share their history through a Redis. History without a URL of its own uses that of c.
func (h *History) shares(c *Cache) bool {
	return h.Redis != HistoryOff && h.Redis+h.RedisURLFile+c.Redis+c.RedisURLFile != ""
}

func checkHistory(r *report, h *History) {
	path, s := either(r, "history.redis", h.Redis, "history.redis_url_file", h.RedisURLFile)
	if h.Redis == HistoryOff {
		s = ""
	}
	if s != "" {
		checkRedis(r, path, s)
	}
	checkRedisFiles(r, h.files(), path, s)
	if h.SecretFile != "" {
		if _, f := secret(h.SecretFile, "", minHistorySecret); f != nil {
			r.add("history.secret_file", f.what, f.remedy)
		}
	}
	r.between("history.max_bytes", h.MaxBytes, minHistory, 64<<30, "bytes")
	if h.Name != "" {
		r.name("history.name", h.Name)
	}
}
