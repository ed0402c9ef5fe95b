//go:build !linux

package resp

import "net"

// sizeBuffers leaves the buffers as the system has them.
func sizeBuffers(*net.TCPConn) {}
