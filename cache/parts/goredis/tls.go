package goredis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS returns the TLS settings of the clients that a table of the configuration describes: the authorities of a PEM
// file, and a certificate for a Redis that asks for one. "" is none.
func TLS(table, caFile, certFile, keyFile string) (*tls.Config, error) {
	authorities, err := Authorities(caFile)
	if err != nil {
		return nil, fmt.Errorf("goredis: %s.tls_ca_file: %w", table, err)
	}
	return &tls.Config{RootCAs: authorities, GetClientCertificate: certificate(table, certFile, keyFile)}, nil
}

// Authorities reads the certificate authorities of a PEM file; nil for "": the system's.
func Authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("there is no certificate in " + file)
	}
	return pool, nil
}

// certificate returns the function that reads the pair at each handshake with a Redis: certificates are renewed. It is
// nil without a pair.
func certificate(table, certFile, keyFile string) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if certFile == "" {
		return nil
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: %s.tls_cert_file: %w", table, err)
		}
		return &pair, nil
	}
}

// secured returns the TLS settings of a connection: those of the URL, with the authorities and the client certificate
// of the configuration. It is nil for a URL without TLS.
func secured(fromURL, given *tls.Config) *tls.Config {
	if fromURL == nil {
		return nil
	}
	c := fromURL.Clone()
	c.MinVersion = tls.VersionTLS12
	if given != nil {
		c.RootCAs = given.RootCAs
		c.GetClientCertificate = given.GetClientCertificate
	}
	return c
}
