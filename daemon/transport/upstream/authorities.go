package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities returns the TLS settings of workers whose certificates the authorities in a PEM file sign; nil for "":
// the system's.
func Authorities(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls_ca_file cannot be read: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls_ca_file %q holds no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
