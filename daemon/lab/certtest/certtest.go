// Package certtest makes TLS certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Pair is a certificate and its key.
type Pair struct {
	Cert, Key string          // their files, in PEM
	TLS       tls.Certificate // both, as a server takes them
	Authority *x509.CertPool  // for a client that trusts this certificate
}

// Write makes a certificate that signs itself, for the subject as a host's name and for 127.0.0.1, valid for 30 days.
// It writes NAME.pem and NAME.key to a folder.
func Write(dir, name, subject string) (p Pair, err error) {
	now := time.Now()
	return WriteDated(dir, name, subject, now.Add(-time.Hour), now.AddDate(0, 0, 30))
}

// WriteDated is Write of a certificate that is valid between these times.
func WriteDated(dir, name, subject string, from, until time.Time) (p Pair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject},
		DNSNames: []string{subject}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return p, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return p, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	p = Pair{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key"), Authority: x509.NewCertPool()}
	p.Authority.AppendCertsFromPEM(cert)
	p.TLS, err = tls.X509KeyPair(cert, private)
	return p, errors.Join(err, os.WriteFile(p.Key, private, 0o600), os.WriteFile(p.Cert, cert, 0o600))
}

// Dates are when a certificate begins and ends to be valid, after now.
type Dates [2]time.Duration

// Dated is [WriteDated] in a test.
func Dated(t testing.TB, dir, name, subject string, d Dates) Pair {
	t.Helper()
	p, err := WriteDated(dir, name, subject, time.Now().Add(d[0]), time.Now().Add(d[1]))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// New is [Write] in a test.
func New(t testing.TB, dir, name, subject string) Pair {
	t.Helper()
	p, err := Write(dir, name, subject)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
