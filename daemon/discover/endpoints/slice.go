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
	listed := map[string]bool{} // URLs that the slices have, whatever their condition
	taken := map[string]bool{}  // UIDs of pods, and URLs
	named := map[string]bool{}  // names of pods
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
			if !ok || len(all) >= maxPods {
				continue
			}
			listed[url] = true
			w := Worker{URL: url, Pod: e.pod(), Leaving: e.terminating() || !e.ready()}
			if !e.ready() && !ready[url] {
				continue // not yet
			}
			uid := url
			if e.Target != nil && e.Target.UID != "" {
				uid = e.Target.UID
			}
			ready[url] = true
			if taken[uid] || taken[url] {
				continue
			}
			taken[uid], taken[url] = true, true
			all = append(all, w)
		}
	}
	maps.DeleteFunc(ready, func(url string, _ bool) bool { return !listed[url] })
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
