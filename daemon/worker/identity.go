package worker

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
)

// identity is what never changes of a worker.
type identity struct {
	slot   uint32
	rank   uint32 // data-parallel, of the engines behind its endpoint
	id     string
	key    uint64
	header string // the rank as RankHeader wants it; "" = the only engine behind its endpoint
}

// address is what never changes of an endpoint. Another id or URL makes another endpoint.
type address struct {
	number  uint64 // of its life in the pool: no other endpoint ever has it
	name    string // the id that it is configured by
	url     string // with credentials: for requests only
	shown   string // without them: for logs and pages
	metrics string // URL
}

// identify returns where a spec's worker is. The pool gives the number.
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

// sameAs reports whether the two are one endpoint, configured again.
func (a *address) sameAs(o *address) bool {
	return a.name == o.name && a.url == o.url && a.metrics == o.metrics
}

// rankMark stands in the id of a data-parallel rank between the worker's id and the rank, as in gpu-1#2. No configured
// id has it.
const rankMark = "#"

// rankOf returns who the rank r is of n behind one address. The pool gives the slot. The only one has the id of the
// endpoint.
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
