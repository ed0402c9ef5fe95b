package kvcache

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate makes one for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestSelf: which member is this daemon.
func TestSelf(t *testing.T) {
	here := map[netip.Addr]bool{netip.MustParseAddr("10.0.0.1"): true}
	host, _ := os.Hostname()
	f := func(member, door string, want bool) {
		t.Helper()
		if got := isHere(member, door, here); got != want {
			t.Errorf("isHere(%q, %q) = %v", member, door, got)
		}
	}
	f("10.0.0.1:6380", "0.0.0.0:6380", true)
	f("10.0.0.1:6380", ":6380", true)
	f("10.0.0.1:6380", ":6381", false)
	f("10.0.0.2:6380", ":6380", false)
	f("127.0.0.1:6380", "127.0.0.1:6380", true)
	f(host+":6380", ":6380", true)
	f("other:6380", ":6380", false)
	f("10.0.0.1", ":6380", false)
}
