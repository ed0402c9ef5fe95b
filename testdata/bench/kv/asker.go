package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// asker is a client that does not keep values.
type asker struct {
	conn net.Conn
	in   *bufio.Reader
}

// newAsker connects. With named it opens as the libraries for Redis do.
func newAsker(addr string, named bool) (*asker, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &asker{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	if named {
		if _, err := c.ask("CLIENT", "ID"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// command returns the bytes of a command.
func command(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// ask sends a command and returns the first line of its answer.
func (c *asker) ask(words ...string) (string, error) {
	if _, err := c.conn.Write(command(words...)); err != nil {
		return "", err
	}
	return c.line()
}

// put sends a SET, whose value is not copied.
func (c *asker) put(key string, value []byte) (string, error) {
	list := net.Buffers{fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, len(value)), value,
		[]byte("\r\n")}
	if _, err := list.WriteTo(c.conn); err != nil {
		return "", err
	}
	return c.line()
}

func (c *asker) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err == nil && n >= 0 {
		_, err = c.in.Discard(n + 2)
		return line, err
	}
	return line, nil
}

// block returns a descriptor of the connection whose calls block: the time of an answer is then the kernel's and the
// daemon's, not that of this program's scheduler.
func (c *asker) block() (int, error) {
	f, err := c.conn.(*net.TCPConn).File()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return 0, err
	}
	return fd, syscall.SetNonblock(fd, false)
}

// askNow sends a command and returns the bytes of the first read.
func askNow(fd int, command []byte) (string, error) {
	if _, err := syscall.Write(fd, command); err != nil {
		return "", err
	}
	var room [64]byte
	n, err := syscall.Read(fd, room[:])
	return string(room[:max(n, 0)]), err
}
