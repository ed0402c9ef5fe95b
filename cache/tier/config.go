package tier

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// Config is where values are kept. The zero value keeps them in 64 MiB of memory.
type Config struct {
	MaxBytes int              // L1: keys, values, overhead; one namespace may hold half of it. Default 64 MiB
	Owners   Owners           // of values, who share half of MaxBytes; nil = no value has one
	Redis    string           // L2: redis://, rediss:// or unix:// URL; "" for none. Its password is never logged
	TLS      *tls.Config      // of rediss://: RootCAs and GetClientCertificate; nil = the system's authorities
	Prefix   string           // of every key in Redis; default "warmpath:". Routers that share values have the same
	Timeout  time.Duration    // of a request's time that Redis may take in one call; default 5 ms
	Clock    func() time.Time // of virtual time, as the lab's; default time.Now
	Log      *slog.Logger     // gets a line when Redis is lost and one when it is back; default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = 64 << 20
	}
	if c.Prefix == "" {
		c.Prefix = "warmpath:"
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Millisecond
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
