package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// rawWorker answers each connection with what serve writes. n counts connections from 1.
func rawWorker(t testing.TB, serve func(c *net.TCPConn, br *bufio.Reader, n int)) string {
	t.Helper()
	var n atomic.Int32
	return "http://" + porttest.Serve(t, func(c *net.TCPConn) {
		defer c.Close()
		serve(c, bufio.NewReader(c), int(n.Add(1)))
	})
}

// saying is a worker that answers every request on a connection with the same bytes, then runs then and closes.
func saying(t testing.TB, answer string, then func(c *net.TCPConn)) string {
	t.Helper()
	return rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		for readRequest(br) == nil {
			io.WriteString(c, answer)
			if then != nil {
				then(c)
				return
			}
		}
	})
}

func readRequest(br *bufio.Reader) error {
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

// client keeps idle connections for a minute unless c sets another time: a slow machine may take over 3.5 s.
func client(t testing.TB, c Config) *Client {
	t.Helper()
	c.IdleTimeout = positive(c.IdleTimeout, time.Minute)
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

var post = &Request{Method: "POST", Path: "/v1/completions", Header: []Field{{"Content-Type", "application/json"}}, Body: []byte(`{}`)}

// ask does a request to its end.
func ask(u *Client, r *Request) (status int, body string, err error) {
	resp, err := u.Do(context.Background(), r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Close()
	b, err := io.ReadAll(resp)
	return resp.Status, string(b), err
}

// settles checks that what the test does leaves no goroutine and no descriptor behind.
func settles(t *testing.T, do func()) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	do()
	waittest.Until(t, "goroutines and descriptors are back to baseline", func() bool {
		return runtime.NumGoroutine() <= goroutines && descriptors() <= files
	})
}

func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not Linux
	}
	return len(all)
}
