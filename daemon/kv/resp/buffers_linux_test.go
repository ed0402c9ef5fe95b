package resp

import (
	"net"
	"syscall"
	"testing"
)

// TestBuffers: the receive buffer grows, and still a read waits for no more than a byte.
func TestBuffers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	tcp := server.(*net.TCPConn)
	before := option(t, tcp, syscall.SO_RCVBUF)
	sizeBuffers(tcp)
	if after := option(t, tcp, syscall.SO_RCVBUF); after <= before {
		t.Errorf("the room for what comes is %d bytes, and was %d before", after, before)
	}
	if low := option(t, tcp, syscall.SO_RCVLOWAT); low != 1 {
		t.Errorf("a read waits for %d bytes", low)
	}
	if room := option(t, tcp, syscall.SO_SNDBUF); room > 2*sendRoom { // the kernel doubles the size
		t.Errorf("the room for what goes is %d bytes to a client of the same machine", room)
	}
}

func option(t *testing.T, tcp *net.TCPConn, name int) (value int) {
	t.Helper()
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			var failed error
			if value, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, name); failed != nil {
				t.Error(failed)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}
