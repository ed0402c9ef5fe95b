package rig

import "net"

// Redis starts redis-server on addr, host:port, with further options of its command line. It saves nothing.
func Redis(dir, addr string, options ...string) (*Proc, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return listening(Start(dir, "redis-server", addr, append([]string{"redis-server", "--bind", host, "--port", port,
		"--dir", dir, "--save", ""}, options...)...))
}

// listening waits until a process that was started listens, and stops it if it does not.
func listening(p *Proc, err error) (*Proc, error) {
	if err != nil {
		return nil, err
	}
	if err := p.AwaitPort(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}
