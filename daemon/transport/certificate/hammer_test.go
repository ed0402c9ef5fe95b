package certificate

import (
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
)

// TestHammer: while the files change and are reloaded, each handshake gets a whole pair.
func TestHammer(t *testing.T) {
	s := begin(t, -day, 90*day)
	get := s.TLS().GetCertificate
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 300 {
				s.Look(s.now.Add(time.Duration(i) * 2 * time.Second))
				s.Stats()
				if c, err := get(&tls.ClientHelloInfo{}); err != nil || c == nil || c.Leaf == nil || c.PrivateKey == nil {
					t.Errorf("%+v, %v", c, err)
					return
				}
			}
		})
	}
	for _, name := range []string{"second", "third", "fourth"} {
		certtest.Dated(t, s.dir, "c", name, certtest.Dates{-day, 90 * day})
		_ = s.Reload() // the files may stand half written to one of the looks; it then keeps the pair before
	}
	all.Wait()
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if name := s.current.Load().Leaf.Subject.CommonName; name != "fourth" {
		t.Errorf("%q is used; want the last one", name)
	}
}
