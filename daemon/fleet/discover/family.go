package discover

import "net/netip"

// A pod or a host of two address families has an A and an AAAA record under one name, and is one worker. Addresses do
// not show which belong together. Where a name has as many of one kind as of the other, they are taken for the same
// workers, and IPv4 is used: two workers in the place of one would have half of the load and half of the cache in each
// of the router's records, and twice max_in_flight.

// paired reports whether the addresses of both kinds are taken for the same workers. was: they have been until now. The
// two kinds come by two queries, and while pods come and go one has more for a moment. So they stay paired until one
// has more than twice as many.
func paired(all []netip.Addr, was bool) bool {
	four := 0
	for _, a := range all {
		if a.Is4() {
			four++
		}
	}
	six := len(all) - four
	if four == six {
		return four > 0
	}
	return was && max(four, six) <= 2*min(four, six)
}

// used returns the addresses at which the workers are: those of IPv4 alone if both kinds are paired.
func used(all []netip.Addr, paired bool) []netip.Addr {
	n := 0
	for paired && n < len(all) && all[n].Is4() { // they are sorted
		n++
	}
	if n == 0 {
		return all
	}
	return all[:n]
}
