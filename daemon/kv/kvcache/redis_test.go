package kvcache

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestClientCertificate: a Redis that asks for a certificate, as redis-server does by default, takes the values of a
// daemon that has one, and not of another.
func TestClientCertificate(t *testing.T) {
	url, pair := redistest.TLS(t)
	f := func(certFile, keyFile string, want bool) {
		t.Helper()
		c := config()
		c.RESP = "127.0.0.1:0"
		c.L2 = &L2{Memory: true, CAFile: pair.Cert, CertFile: certFile, KeyFile: keyFile, Promote: "always",
			Timeout: 5 * time.Second, Redis: func() (string, error) { return url, nil }}
		k, _ := running(t, c)
		waittest.Until(t, "the Redis has answered, or refused", func() bool {
			s, _ := k.Stats()
			return s.L2.Servers[0].Up == want && (want || s.L2.Servers[0].Opens > 0)
		})
		if err := client(t, k).Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the value is written or skipped", func() bool {
			s, _ := k.Stats()
			return want && s.L2.Puts == 1 || !want && s.L2.Skipped == 1
		})
	}
	f(pair.Cert, pair.Key, true)
	f("", "", false)
}

// TestUnequalMembers: the room of a pool is the sum of what its members have, not a multiple of this one's.
func TestUnequalMembers(t *testing.T) {
	members := []string{porttest.Address(t), porttest.Address(t)}
	var all []*Cache
	for n, self := range members {
		c := config()
		c.RESP, c.MaxBytes = self, int64(n*3+1)*(16<<20)
		c.L2 = &L2{Memory: true, Members: Members{List: members}, Self: self, Promote: "always", Timeout: 5 * time.Second}
		k, _ := running(t, c)
		all = append(all, k)
	}
	for _, k := range all {
		waittest.Until(t, "each member knows the room of the pool", func() bool { return k.room() == 5*16<<20 })
	}
}
