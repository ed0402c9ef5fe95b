package vllmsim

import (
	"fmt"
	"net"
	"strconv"
)

// Fleet is several workers in one process.
type Fleet []*Server

// StartFleet starts count workers on consecutive ports from listen on (port 0: any ports), with ids sim-0, sim-1, ...
// Where the addresses of their events have a port of their own, these are consecutive too, over workers and ranks.
// When one of them cannot start, none is left running.
func StartFleet(listen string, count int, cfg Config) (Fleet, error) {
	host, p, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("vllmsim: address %q: %w; write host:port", listen, err)
	}
	port, err := strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 || count < 1 || port+count-1 > 65535 {
		return nil, fmt.Errorf("vllmsim: no room for %d workers from %q on; "+
			"give a port from 0 to 65535 and at least one worker", count, listen)
	}
	var f Fleet
	for i := range count {
		c := cfg
		c.ID = "sim-" + strconv.Itoa(i)
		if err := c.KVEvents.moveTo(i, max(1, cfg.DataParallel)); err != nil {
			f.Close()
			return nil, err
		}
		s, err := New(c)
		if err != nil {
			f.Close()
			return nil, err
		}
		f = append(f, s)
		next := port
		if port != 0 {
			next = port + i
		}
		if err := s.Start(net.JoinHostPort(host, strconv.Itoa(next))); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// URLs returns the workers' base URLs.
func (f Fleet) URLs() []string {
	urls := make([]string, len(f))
	for i, s := range f {
		urls[i] = s.URL()
	}
	return urls
}

// Close ends all workers.
func (f Fleet) Close() {
	for _, s := range f {
		s.Close()
	}
}

// Stranded returns an error if prefill workers keep blocks, or have kept some that no decode worker has pulled in time.
func (f Fleet) Stranded() error {
	stranded, kept := int64(0), 0
	for _, w := range f {
		st := w.Stats()
		stranded += st.BlocksStranded
		kept += st.BlocksPinned
	}
	if stranded > 0 || kept > 0 {
		return fmt.Errorf("vllmsim: no decode worker pulled %d KV blocks in time, and %d still wait for one; see who left "+
			"between the legs of a pair", stranded, kept)
	}
	return nil
}
