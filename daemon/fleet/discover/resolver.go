package discover

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Resolver returns the addresses of a name. System makes the one of a process, and a test has a table.
type Resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// half is the error of a name of which one query failed and the other did not: IPv4 and IPv6 are two queries.
type half struct {
	is6 bool // the one that failed
	err error
}

func (h *half) Error() string { return h.err.Error() }

// System makes a Resolver that asks r for addresses of both kinds, IPv4 and IPv6. A name without addresses of one
// kind is not an error. If one query fails and the other does not, the result has the addresses of the other, and an
// error that makes the caller keep the known addresses of the failed kind.
func System(r *net.Resolver) Resolver {
	return func(ctx context.Context, host string) (found []netip.Addr, err error) {
		kinds := [2]string{"ip4", "ip6"}
		var addrs [2][]netip.Addr
		var errs [2]error
		var both sync.WaitGroup
		for i, kind := range kinds {
			both.Go(func() { addrs[i], errs[i] = r.LookupNetIP(ctx, kind, host) })
		}
		both.Wait()
		for i := range kinds {
			if d, ok := errors.AsType[*net.DNSError](errs[i]); ok && d.IsNotFound && errs[1-i] == nil {
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
}
