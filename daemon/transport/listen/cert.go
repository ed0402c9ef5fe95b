package listen

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certEvery is the least time between two looks at the files. A handshake looks, so that no goroutine runs for it.
// Reading both is some 30 us, less than a tenth of a handshake.
const certEvery = time.Second

// certs holds the newest pair of certificate and key that could be used.
type certs struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu     sync.Mutex // guards the rest; one look at a time
	looked time.Time
	cert   []byte // as last read, whether usable or not
	key    []byte
	unread bool // the last look could not read them
}

func loadCerts(certFile, keyFile string, log *slog.Logger) (*certs, error) {
	s := &certs{certFile: certFile, keyFile: keyFile, log: log}
	return s, s.reload()
}

func (s *certs) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.look()
			return s.current.Load(), nil
		},
	}
}

// reload reads the pair and uses it, or returns why not.
func (s *certs) reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.read()
	return err
}

// look reloads if it is time. It logs once a pair that cannot be used.
func (s *certs) look() {
	if !s.mu.TryLock() {
		return // another handshake looks now
	}
	defer s.mu.Unlock()
	if time.Since(s.looked) < certEvery {
		return
	}
	changed, err := s.read()
	switch {
	case changed && err != nil:
		s.log.Error("listen: the new TLS certificate is not used, the old one stays", "error", err)
	case changed:
		s.log.Info("listen: a new TLS certificate is used", "file", s.certFile)
	}
}

// read reads the pair, with mu held. It returns true if the files have changed since the last read.
func (s *certs) read() (changed bool, err error) {
	s.looked = time.Now()
	cert, err := os.ReadFile(s.certFile)
	key, kerr := os.ReadFile(s.keyFile)
	if err == nil {
		err = kerr
	}
	if err != nil {
		changed = !s.unread
		s.unread = true
		s.cert = nil
		s.key = nil
		const remedy = "set both tls_cert_file and tls_key_file"
		return changed, fmt.Errorf("listen: the TLS certificate cannot be read; %s: %w", remedy, err)
	}
	changed = !bytes.Equal(cert, s.cert) || !bytes.Equal(key, s.key)
	s.cert = cert
	s.key = key
	s.unread = false
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return changed, fmt.Errorf("listen: the TLS certificate %q and the key %q are no pair in PEM form: %w",
			s.certFile, s.keyFile, err)
	}
	if changed {
		s.current.Store(&pair)
	}
	return changed, nil
}
