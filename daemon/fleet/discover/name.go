package discover

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	resolveEvery   = 5 * time.Second // give or take a tenth; the TTL of a headless Kubernetes service
	resolveTimeout = 3 * time.Second
	maxAddresses   = 4096 // taken from one answer
)

var errNoAddress = errors.New("discover: the name has no address")

// nameSource is a worker at each address of a name.
type nameSource struct {
	log     *slog.Logger
	resolve Resolver

	asking sync.Mutex // one query at a time, or an older answer could replace a newer one
	halved bool       // one kind of address failed, and this is logged; guarded by asking

	mu         sync.Mutex // guards all below
	name       string     // host:port; "" = no name
	addresses  []netip.Addr
	paired     bool  // those of both kinds are the same workers
	unanswered error // why the name has no answer, which is logged
}

// follow replaces the name. It drops the addresses of the previous name.
func (n *nameSource) follow(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != n.name {
		n.name = name
		n.addresses = nil
		n.paired = false
		n.unanswered = nil
	}
}

// why returns why the name gives no addresses now.
func (n *nameSource) why() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unanswered
}

// urls returns the URLs of the workers at the addresses that the name gave last.
func (n *nameSource) urls() (urls []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, port, err := net.SplitHostPort(n.name)
	if err != nil {
		return nil // no name, or one that ask has logged
	}
	for _, a := range used(n.addresses, n.paired) {
		urls = append(urls, "http://"+net.JoinHostPort(a.String(), port))
	}
	return urls
}

// askAgain asks every resolveEvery until ctx ends, and calls asked each time.
func (n *nameSource) askAgain(ctx context.Context, asked func()) {
	for ctx.Err() == nil {
		timer := time.NewTimer(resolveEvery*9/10 + rand.N(resolveEvery/5))
		select {
		case <-ctx.Done():
		case <-timer.C:
			n.ask(ctx)
			asked()
		}
		timer.Stop()
	}
}

// ask resolves the name. A failure changes nothing.
func (n *nameSource) ask(ctx context.Context) {
	n.asking.Lock()
	defer n.asking.Unlock()
	n.mu.Lock()
	name := n.name
	n.mu.Unlock()
	if name == "" {
		return
	}
	addresses, err := n.lookup(ctx, name)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case name != n.name || ctx.Err() != nil:
	case err != nil:
		if n.unanswered == nil {
			n.log.Warn("workers_dns has no answer: the workers it gave before stay",
				"name", name, "workers", len(n.addresses), "error", err)
		}
		n.unanswered = err
	default:
		n.unanswered = nil
		was := n.paired
		if !n.halved {
			n.paired = paired(addresses, was)
		}
		if n.paired && !was {
			n.log.Info("workers_dns gives as many IPv4 as IPv6 addresses: they are taken for the same workers, and IPv4"+
				" is used; if they are not, name each kind by itself, in pools or in workers_file", "name", name)
		}
		if !slices.Equal(addresses, n.addresses) || n.paired != was {
			n.addresses = addresses
			n.log.Info("workers_dns resolved", "name", name, "workers", len(used(addresses, n.paired)))
		}
	}
}

// lookup returns the addresses of name, at which a worker can be, sorted. The caller holds n.asking.
func (n *nameSource) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err // conf has checked it
	}
	ctx, stop := context.WithTimeout(ctx, resolveTimeout)
	defer stop()
	found, err := n.resolve(ctx, host)
	failed, isHalf := errors.AsType[*half](err)
	switch {
	case isHalf:
		known := n.known(failed.is6)
		if len(known) > 0 && !n.halved {
			n.log.Warn("workers_dns has no answer for one kind of address: those it gave before stay",
				"name", name, "ipv6", failed.is6, "workers", len(known), "error", failed.err)
		}
		n.halved = true
		found = append(found, known...)
	case err != nil:
		return nil, err
	default:
		n.halved = false
	}
	found = usable(found)
	if len(found) == 0 {
		return nil, errNoAddress
	}
	return found, nil
}

// known returns the addresses of one kind that the name gave last.
func (n *nameSource) known(is6 bool) (found []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.addresses {
		if a.Is6() == is6 {
			found = append(found, a)
		}
	}
	return found
}

// usable returns the addresses that a worker can have, each once, in order.
func usable(found []netip.Addr) []netip.Addr {
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	return slices.DeleteFunc(found[:min(len(found), maxAddresses)], func(a netip.Addr) bool {
		return !a.IsValid() || a.IsUnspecified() || a.IsMulticast()
	})
}
