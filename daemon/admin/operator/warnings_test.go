package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// TestWarnings: each trouble is named with what to do, and a process that is well has none.
func TestWarnings(t *testing.T) {
	now := time.Now()
	far := func(s remote.ServerStats) counts {
		return counts{kvOpen: true, kv: kvcache.Stats{L2: &remote.Stats{Servers: []remote.ServerStats{s}}}}
	}
	cert := func(days int, refused error) counts {
		return counts{certs: []certificate.Stats{{Listener: "server", File: "a.pem", NotBefore: now.AddDate(0, 0, -30),
			NotAfter: now.AddDate(0, 0, days), Refused: refused}}}
	}
	var lost, calm trends
	for _, name := range []string{spansLost, linesLost, shedsOf + "p"} {
		lost.see(name, 0, now)
		lost.see(name, 7, now)
		calm.see(name, 0, now)
	}
	for _, c := range []struct {
		name   string
		n      counts
		t      *trends
		abouts string
		text   string
	}{
		{"well", counts{store: tier.Stats{L2: tier.L2Stats{Configured: true}}, peers: peers.Stats{On: true, Connected: true}}, &calm, "", ""},
		{"no Redis", counts{store: tier.Stats{L2: tier.L2Stats{Configured: true, Open: true, Owing: 4}}}, &calm, "redis", "4 changes"},
		{"no history", counts{peers: peers.Stats{On: true, Err: "refused"}}, &calm, "history", "refused"},
		{"L2 is down", far(remote.ServerStats{Address: "a:1", DownFor: time.Minute}), &calm, "kv_cache.l2", "a:1 has not answered for 1m0s"},
		{"L2 is full", far(remote.ServerStats{Address: "a:1", Refuses: "oom"}), &calm, "kv_cache.l2", "takes no value: oom"},
		{"L2 is well", far(remote.ServerStats{Address: "a:1"}), &calm, "", ""},
		{"a good certificate", cert(30, nil), &calm, "", ""},
		{"one that ends", cert(5, nil), &calm, "certificate", "the certificate of server, a.pem, ends soon"},
		{"one that has ended", cert(-5, nil), &calm, "certificate", "is expired"},
		{"a worse one in the file", cert(30, errors.New("the new one expired")), &calm, "certificate", "the new one expired"},
		{"losses", counts{}, &lost, "tracing access_log shedding", "7 spans"},
	} {
		var abouts, texts []string
		for _, w := range warnings(&c.n, c.t, now) {
			abouts, texts = append(abouts, w.About), append(texts, w.Text)
			if w.Do == "" {
				t.Errorf("%s: %s says not what to do", c.name, w.Text)
			}
		}
		if got := strings.Join(abouts, " "); got != c.abouts || !strings.Contains(strings.Join(texts, "\n"), c.text) {
			t.Errorf("%s: about %q, %q; want %q, %q", c.name, got, texts, c.abouts, c.text)
		}
	}
}
