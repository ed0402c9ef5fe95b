//go:build !unix

package upstream

import "github.com/warmpath/warmpath/daemon/transport/socket"

// firstRead needs a descriptor that can be read without waiting. Without one a connection that died is found by the
// next request, and replaced.
type firstRead struct{ suspect bool }

type sender interface{ sendHead(*Request) error }

func (*firstRead) init(*socket.Conn, bool, sender) {}
func (*firstRead) usable() bool                    { return false }
func (*firstRead) alive() bool                     { return true }
func (*firstRead) read() (start, error)            { panic("BUG: upstream: there is no raw connection") }
func (*firstRead) ask(*Request) (start, error)     { panic("BUG: upstream: there is no raw connection") }
