//go:build !linux

package resp

import "net"

// sizeBuffers leaves the buffers at the system's sizes.
func sizeBuffers(*net.TCPConn) {}
