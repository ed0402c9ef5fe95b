// Package certificate holds a listener's certificate and key: it uses their files when they change, never replaces a
// certificate that is valid now by one that is not, and logs for two weeks that one is about to expire.
package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// every is the least time between two looks at the files. Reading both takes some 30 us, less than a tenth of a
	// handshake.
	every = time.Second
	// Soon is how long before its end a certificate is reported.
	Soon = 14 * 24 * time.Hour
	// again is the time between two log lines about the same certificate.
	again = 24 * time.Hour
)

// Config states where a certificate is and who uses it.
type Config struct {
	Listener          string // for people: the table of the configuration, as server
	CertFile, KeyFile string // PEM
	Log               *slog.Logger
}

// Pair is the newest certificate that can be used, with its key. It is safe for concurrent use. A nil Pair has none.
type Pair struct {
	c       Config
	current atomic.Pointer[tls.Certificate]

	mu      sync.Mutex // guards the rest; one look at a time
	looked  time.Time
	cert    []byte // as last read, whether usable or not
	key     []byte
	unread  bool             // the last look could not read them
	next    *tls.Certificate // in the files, and not used while it is not valid; nil = the files have current
	refused error            // why the files' pair is not used; nil = it is
	logged  time.Time        // when the end of current was last logged
}

// Stats describes the certificate in force.
type Stats struct {
	Listener  string    `json:"listener"` // server, or kv_cache
	File      string    `json:"file"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	State     State     `json:"state"`             // ok, ends soon (in 14 days), expired, not yet valid
	Refused   string    `json:"refused,omitempty"` // why the newer one in the file is not used
}

// State says whether clients accept a certificate.
type State string

// The states.
const (
	OK          State = "ok"
	EndsSoon    State = "ends soon"
	Expired     State = "expired"
	NotYetValid State = "not yet valid"
)

// stateOf returns the state of a certificate.
func stateOf(leaf *x509.Certificate, now time.Time) State {
	switch {
	case now.After(leaf.NotAfter):
		return Expired
	case now.Before(leaf.NotBefore):
		return NotYetValid
	case leaf.NotAfter.Sub(now) < Soon:
		return EndsSoon
	}
	return OK
}

// Load reads the files. A certificate outside its dates is used all the same: there is no better one. An error means
// that there is no pair.
func Load(c Config) (*Pair, error) {
	p := &Pair{c: c}
	_, err := p.read(time.Now())
	return p, err
}

// TLS returns the settings of a server that uses the pair. Each handshake looks whether the files have changed.
func (p *Pair) TLS(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.Look(time.Now())
			return p.current.Load(), nil
		},
	}
}

// Reload reads the files and uses what they hold, or returns why not. It logs a change as Look does. A nil Pair does
// nothing.
func (p *Pair) Reload() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readNow(time.Now())
}

// Look reads the files if a second has passed, and logs a change, a pair that cannot be used, and an end that is near.
// A nil Pair does nothing.
func (p *Pair) Look(now time.Time) {
	if p == nil || !p.mu.TryLock() {
		return // another handshake looks now
	}
	defer p.mu.Unlock()
	if now.Sub(p.looked) < every && !now.Before(p.looked) {
		return
	}
	_ = p.readNow(now)
	p.logEnd(now)
}

// readNow reads the pair, with mu held, and logs a change.
func (p *Pair) readNow(now time.Time) error {
	changed, err := p.read(now)
	switch {
	case changed && err != nil:
		p.c.Log.Error("listen: the new TLS certificate is not used, the old one stays", "listener", p.c.Listener,
			"error", err)
	case changed:
		p.c.Log.Info("listen: a new TLS certificate is used", "file", p.c.CertFile,
			"until", p.current.Load().Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}

// read reads the pair, with mu held. changed is true if the files have changed since the last read, or if a pair that
// waited has become valid.
func (p *Pair) read(now time.Time) (changed bool, err error) {
	p.looked = now
	defer func() { p.refused = err }()
	cert, err := os.ReadFile(p.c.CertFile)
	key, kerr := os.ReadFile(p.c.KeyFile)
	if err == nil {
		err = kerr
	}
	if err != nil {
		changed = !p.unread
		p.unread = true
		p.cert, p.key, p.next = nil, nil, nil
		const remedy = "set both tls_cert_file and tls_key_file"
		return changed, fmt.Errorf("listen: the TLS certificate cannot be read; %s: %w", remedy, err)
	}
	p.unread = false
	if bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key) {
		if p.next == nil {
			return false, p.refused
		}
		waited := p.take(p.next, now)
		return waited == nil, waited
	}
	p.cert, p.key, p.next = cert, key, nil
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return true, fmt.Errorf("listen: the TLS certificate %q and the key %q are no pair in PEM form: %w",
			p.c.CertFile, p.c.KeyFile, err)
	}
	return true, p.take(&pair, now)
}

// take uses the pair, unless it is outside its dates and the one in force is not. Then the pair waits until it, or the
// end of the one in force, has come.
func (p *Pair) take(pair *tls.Certificate, now time.Time) error {
	why := Outside(pair.Leaf, now)
	if current := p.current.Load(); why != "" && current != nil && Outside(current.Leaf, now) == "" {
		p.next = pair
		return fmt.Errorf("listen: the TLS certificate %q %s; the one before stays, until %s: renew it",
			p.c.CertFile, why, current.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	p.next = nil
	p.logged = time.Time{}
	p.current.Store(pair)
	return nil
}

// logEnd logs once a day that clients refuse the certificate in force, or soon will.
func (p *Pair) logEnd(now time.Time) {
	current := p.current.Load()
	if current == nil || now.Sub(p.logged) < again {
		return
	}
	leaf := current.Leaf
	switch {
	case Outside(leaf, now) != "":
		p.c.Log.Error("listen: the TLS certificate is outside its dates, and clients refuse it; renew it, no restart is "+
			"needed", "listener", p.c.Listener, "file", p.c.CertFile, "why", Outside(leaf, now))
	case leaf.NotAfter.Sub(now) < Soon:
		p.c.Log.Warn("listen: the TLS certificate ends soon; renew it, no restart is needed", "listener", p.c.Listener,
			"file", p.c.CertFile, "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		return
	}
	p.logged = now
}

// Stats describes the certificate in force, as of the last look. A nil Pair has none: ok is false.
func (p *Pair) Stats() (s Stats, ok bool) {
	if p == nil {
		return s, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	current := p.current.Load()
	if current == nil {
		return s, false
	}
	s = Stats{Listener: p.c.Listener, File: p.c.CertFile, NotBefore: current.Leaf.NotBefore,
		NotAfter: current.Leaf.NotAfter, State: stateOf(current.Leaf, time.Now())}
	if p.refused != nil {
		s.Refused = p.refused.Error()
	}
	return s, true
}
