package rig

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ServeBlocking gives each connection to a goroutine of its own, as a file whose system calls block: the least that a
// server can do. serve returns when the connection is over.
func ServeBlocking(addr string, serve func(*os.File)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		f, err := c.(*net.TCPConn).File()
		c.Close()
		if err != nil {
			return err
		}
		if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
			return err
		}
		go func() {
			defer f.Close()
			serve(f)
		}()
	}
}

// maxPieces is what one writev takes.
const maxPieces = 1024

// WriteAll writes pieces with one system call, and with more if the kernel has not taken all.
func WriteAll(f *os.File, list [][]byte) error {
	fd := int(f.Fd())
	for len(list) > 0 {
		sent, err := unix.Writev(fd, list[:min(len(list), maxPieces)])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for sent = max(sent, 0); len(list) > 0 && sent >= len(list[0]); {
			sent -= len(list[0])
			list = list[1:]
		}
		if sent > 0 {
			list[0] = list[0][sent:]
		}
	}
	return nil
}
