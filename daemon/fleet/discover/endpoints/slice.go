package endpoints

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Worker is a pod that answers, or did so until now.
type Worker struct {
	URL     string // http://ADDRESS:PORT
	Pod     string // its name; "" = not known, or the name of an earlier one
	Zone    string // that its node is in; "" = not known
	Leaving bool   // no new requests
}

// slice is the fields that are read of a discovery.k8s.io/v1 EndpointSlice.
type slice struct {
	Metadata    meta       `json:"metadata"`
	AddressType string     `json:"addressType"` // IPv4 | IPv6 | FQDN
	Endpoints   []endpoint `json:"endpoints"`
	Ports       []port     `json:"ports"`
}

type meta struct {
	Name     string `json:"name"`
	Version  string `json:"resourceVersion"`
	Continue string `json:"continue"` // of a list
}

type endpoint struct {
	Addresses  []string `json:"addresses"` // of which the first alone counts
	Zone       string   `json:"zone"`
	Conditions struct {
		Ready       *bool `json:"ready"` // absent = true
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	Target *struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"targetRef"`
}

type port struct {
	Name *string `json:"name"`
	Port *int    `json:"port"`
}

// maxPods bounds the workers of one service.
const maxPods = 4096

func (e *endpoint) ready() bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }
func (e *endpoint) terminating() bool {
	return e.Conditions.Terminating != nil && *e.Conditions.Terminating
}

// pod returns the name of the endpoint's pod.
func (e *endpoint) pod() string {
	if e.Target == nil || e.Target.Kind != "Pod" {
		return ""
	}
	return e.Target.Name
}

// portOf returns the slice's port of that name or number; "" is its first.
func (s *slice) portOf(want string) (int, bool) {
	for _, p := range s.Ports {
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
			continue
		}
		if want == "" || want == strconv.Itoa(*p.Port) || p.Name != nil && *p.Name == want {
			return *p.Port, true
		}
	}
	return 0, false
}

// workersOf returns the workers of the slices in the order of their URLs. ready holds the URLs that were ready once; it
// is brought up to date.
func workersOf(of map[string]*slice, want string, ready map[string]bool) (all []Worker) {
	named := map[string]bool{} // names of pods
	one := oneEach(candidatesOf(of, want, ready))
	for _, c := range one[:min(len(one), maxPods)] {
		all = append(all, c.Worker)
	}
	slices.SortFunc(all, func(a, b Worker) int {
		return cmp.Or(compareBools(a.Leaving, b.Leaving), strings.Compare(a.URL, b.URL))
	})
	for i := range all { // a pod of a stateful set that came back has the name of the one that goes
		if named[all[i].Pod] {
			all[i].Pod = ""
		}
		named[all[i].Pod] = true
	}
	slices.SortFunc(all, func(a, b Worker) int { return strings.Compare(a.URL, b.URL) })
	return all
}

// candidate is an entry of a slice that may be a worker.
type candidate struct {
	Worker
	uid string // of its pod; "" = not known
}

// family returns 0 for IPv4, 1 for IPv6.
func (c *candidate) family() int {
	if strings.Contains(c.URL, "[") {
		return 1
	}
	return 0
}

// oneEach returns one entry for each URL and for each pod. A ready entry takes precedence, whatever the order:
// Kubernetes gives an address to a new pod while the old one is still listed, and a slice may have a stale copy of an
// entry in another slice. Of equals the first wins.
func oneEach(all []candidate) []candidate {
	keepFamily(all)
	slices.SortStableFunc(all, func(a, b candidate) int { return compareBools(a.Leaving, b.Leaving) })
	taken := map[string]bool{} // UIDs of pods, and URLs
	return slices.DeleteFunc(all, func(c candidate) bool {
		if taken[c.URL] || taken[c.uid] {
			return true
		}
		taken[c.URL], taken[c.uid] = true, c.uid != ""
		return false
	})
}

// keepFamily keeps a pod of two families at its IPv4 address until both slices say that it goes. The API writes one
// after the other, and a worker that is at another URL meanwhile would lose what is known of its cache.
func keepFamily(all []candidate) {
	ready := map[string][2]bool{} // by UID: in IPv4, in IPv6
	for _, c := range all {
		r := ready[c.uid]
		r[c.family()] = r[c.family()] || !c.Leaving
		ready[c.uid] = r
	}
	for i := range all {
		if c := &all[i]; c.uid != "" && c.family() == 0 && ready[c.uid] == [2]bool{false, true} {
			c.Leaving = false
		}
	}
}

// candidatesOf returns the entries that are ready or were so once, those of IPv4 first. It brings ready up to date.
func candidatesOf(of map[string]*slice, want string, ready map[string]bool) (all []candidate) {
	listed := map[string]bool{} // URLs that the slices have, whatever their condition
	order := slices.SortedFunc(maps.Values(of), func(a, b *slice) int {
		return cmp.Or(strings.Compare(a.AddressType, b.AddressType), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	for _, s := range order {
		number, ok := s.portOf(want)
		if !ok {
			continue
		}
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			url, ok := e.url(number)
			if !ok || len(all) >= 2*maxPods {
				continue
			}
			listed[url] = true
			c := candidate{Worker: Worker{URL: url, Pod: e.pod(), Zone: e.Zone, Leaving: e.terminating() || !e.ready()}}
			if !e.ready() && !ready[url] {
				continue // not yet
			}
			ready[url] = true
			if e.Target != nil {
				c.uid = e.Target.UID
			}
			all = append(all, c)
		}
	}
	maps.DeleteFunc(ready, func(url string, _ bool) bool { return !listed[url] })
	return all
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// url returns where the endpoint answers. Names in place of addresses, which are deprecated, are left out.
func (e *endpoint) url(port int) (string, bool) {
	if len(e.Addresses) == 0 {
		return "", false
	}
	a, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
		return "", false
	}
	return "http://" + net.JoinHostPort(a.Unmap().String(), strconv.Itoa(port)), true
}
