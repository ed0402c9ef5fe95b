package worker

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
)

// identity holds what never changes of a worker.
type identity struct {
	slot   uint32
	rank   uint32 // data-parallel, of the engines behind its endpoint
	id     string
	key    uint64
	header string // the value of RankHeader; "" = the only engine behind its endpoint
}

// address holds what never changes of an endpoint. Another id or URL makes another endpoint.
type address struct {
	number  uint64 // unique among all endpoints that the pool ever has
	name    string // the configured id
	url     string // with credentials: for requests only
	shown   string // without credentials: for logs and pages
	metrics string // URL
}

// identify returns the address that a spec describes. The pool gives the number.
func identify(s Spec) (address, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		// Neither the URL nor url.Parse's error is shown: both may hold a password.
		return address{}, fmt.Errorf("worker: worker %q has a url that is not http://host:port or https://host:port; "+
			"correct its url", s.ID)
	}
	at := address{
		name:    s.ID,
		url:     strings.TrimRight(s.URL, "/"),
		shown:   strings.TrimRight((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/"),
		metrics: s.MetricsURL,
	}
	if at.name == "" {
		at.name = u.Host
	}
	if at.metrics == "" {
		at.metrics = at.url + "/metrics"
	}
	return at, nil
}

// sameAs reports whether both describe one endpoint.
func (a *address) sameAs(o *address) bool {
	return a.name == o.name && a.url == o.url && a.metrics == o.metrics
}

// rankMark separates the worker's id and the rank in the id of a data-parallel rank, as in gpu-1#2. No configured id
// contains it.
const rankMark = "#"

// rankOf returns the identity of rank r of n behind one address. The pool gives the slot. A single rank has the id of
// the endpoint.
func (a *address) rankOf(r, n int) identity {
	who := identity{id: a.name}
	if n > 1 {
		who.rank = uint32(r)
		who.header = strconv.Itoa(r)
		who.id += rankMark + who.header
	}
	who.key = KeyOf(who.id)
	return who
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
