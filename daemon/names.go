package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"sync"
)

// nameServers are those of the system.
var nameServers = &net.Resolver{StrictErrors: true}

// half is the error of a name that has one answer and not the other: IPv4 and IPv6 are two queries.
type half struct {
	is6 bool // the one that failed
	err error
}

func (h *half) Error() string { return h.err.Error() }

// lookup asks for both kinds of address. A kind that the name does not have is no error; one that fails, beside one that does not,
// gives a half: what was known of that kind is to stay, or a lost packet would take half of a fleet.
func lookup(ctx context.Context, host string) (found []netip.Addr, err error) {
	kinds := [2]string{"ip4", "ip6"}
	var addrs [2][]netip.Addr
	var errs [2]error
	var both sync.WaitGroup
	for i, kind := range kinds {
		both.Go(func() { addrs[i], errs[i] = nameServers.LookupNetIP(ctx, kind, host) })
	}
	both.Wait()
	for i := range kinds {
		var d *net.DNSError
		if errors.As(errs[i], &d) && d.IsNotFound && errs[1-i] == nil {
			errs[i] = nil
		}
		found = append(found, addrs[i]...)
	}
	switch {
	case errs[0] != nil && errs[1] != nil:
		return nil, errs[0]
	case errs[0] != nil:
		return found, &half{is6: false, err: errs[0]}
	case errs[1] != nil:
		return found, &half{is6: true, err: errs[1]}
	}
	return found, nil
}

// known are the addresses of one kind that the name gave last.
func (d *discovery) known(is6 bool) (found []netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.dns {
		u, err := url.Parse(w.URL)
		if err != nil {
			continue
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.Is6() == is6 {
			found = append(found, a)
		}
	}
	return found
}
