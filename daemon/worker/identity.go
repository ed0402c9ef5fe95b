package worker

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
)

// identity is what never changes of a worker. Another id or URL makes another worker.
type identity struct {
	number  uint64 // of its life in the pool: no other worker ever has it
	slot    uint32
	id      string
	key     uint64
	url     string // with credentials: for requests only
	shown   string // without them: for logs and pages
	metrics string // URL
}

// identify returns who a spec means. The pool gives number and slot.
func identify(s Spec) (identity, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// Neither the URL nor url.Parse's error is shown: both may hold a password.
		return identity{}, fmt.Errorf("worker: worker %q has a url that is not http://host:port or https://host:port; "+
			"correct its url", s.ID)
	}
	who := identity{
		id:      s.ID,
		url:     strings.TrimRight(s.URL, "/"),
		shown:   strings.TrimRight((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/"),
		metrics: s.MetricsURL,
	}
	if who.id == "" {
		who.id = u.Host
	}
	if who.metrics == "" {
		who.metrics = who.url + "/metrics"
	}
	who.key = KeyOf(who.id)
	return who, nil
}

// sameAs reports whether the two are one worker, configured again.
func (i *identity) sameAs(o *identity) bool {
	return i.id == o.id && i.url == o.url && i.metrics == o.metrics
}

// KeyOf returns the key of a worker by its id. It is FNV-1a with splitmix64's last steps: FNV alone leaves ids that
// differ in the last letter close together, and rendezvous hashing needs all bits.
func KeyOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	z := h.Sum64()
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
