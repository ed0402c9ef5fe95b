package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Address is where a socket is: Network and Addr as the net package takes them.
type Address struct{ Network, Addr string }

// maxIPCPath is what the kernel takes for the path of a unix socket, less its final zero byte.
const maxIPCPath = 107

// ParseAddress reads tcp://HOST:PORT or ipc://PATH, where ipc://@NAME is a socket without a file. HOST may be * or
// empty: all interfaces for a listener, nothing that could be dialled.
func ParseAddress(s string) (Address, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return Address{}, fmt.Errorf("zmtp: address %q has no scheme; want tcp://HOST:PORT or ipc://PATH", s)
	case scheme == "tcp":
		return parseTCP(s, rest)
	case scheme == "ipc":
		if rest == "" || len(rest) > maxIPCPath || strings.ContainsRune(rest, 0) {
			return Address{}, fmt.Errorf("zmtp: address %q: want ipc:// and a path of 1 to %d bytes", s, maxIPCPath)
		}
		return Address{Network: "unix", Addr: rest}, nil
	}
	return Address{}, fmt.Errorf("zmtp: address %q: %q is not spoken; want tcp://HOST:PORT or ipc://PATH", s, scheme)
}

func parseTCP(s, rest string) (Address, error) {
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return Address{}, fmt.Errorf("zmtp: address %q: %v; want tcp://HOST:PORT", s, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return Address{}, fmt.Errorf("zmtp: address %q: port %q; want 0 to 65535", s, port)
	}
	if host == "*" {
		host = ""
	}
	return Address{Network: "tcp", Addr: net.JoinHostPort(host, port)}, nil
}

// String returns the address as ParseAddress takes it.
func (a Address) String() string {
	if a.Network == "unix" {
		return "ipc://" + a.Addr
	}
	return a.Network + "://" + a.Addr
}

// addressOf returns the Address of an endpoint of a connection or listener.
func addressOf(a net.Addr) Address {
	if a.Network() == "unix" {
		return Address{Network: "unix", Addr: a.String()}
	}
	return Address{Network: "tcp", Addr: a.String()}
}
