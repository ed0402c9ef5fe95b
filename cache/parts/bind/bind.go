// Package bind makes the listening sockets of a port: through the system, or through a manager that takes them over
// from the previous process and hands them to the next.
package bind

import "net"

// Binder makes listening sockets, as net.Listen does. A socket that it returns belongs to the caller.
type Binder interface {
	Listen(network, address string) (net.Listener, error)
}

// Or returns b, or the system if b is nil.
func Or(b Binder) Binder {
	if b == nil {
		return system{}
	}
	return b
}

type system struct{}

func (system) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}
