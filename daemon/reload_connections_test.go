package daemon

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// secure is a door with TLS before a worker. It counts the connections whose first request is a client's.
func secure(t *testing.T, certificate *tls.Config, worker string, opened *atomic.Int64) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", certificate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		first := make([]byte, 4)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		to, err := net.Dial("tcp", strings.TrimPrefix(worker, "http://"))
		if err != nil {
			return
		}
		defer to.Close()
		if string(first) == http.MethodPost {
			opened.Add(1)
		}
		to.Write(first)
		go func() { io.Copy(to, c); to.Close() }()
		io.Copy(c, to)
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return "https://" + l.Addr().String()
}

// TestConnectionsOutliveAChangeOfWorkers: workers_file changes a hundred times while a client sends one request after the
// other to workers with TLS. No request fails, and each worker sees one connection for each time that it was added. A
// change of a timeout does make new ones.
func TestConnectionsOutliveAChangeOfWorkers(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{Speed: 1000})
	ca, of := filepath.Join(t.TempDir(), "ca.pem"), httptest.NewTLSServer(nil)
	t.Cleanup(of.Close)
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate().Raw})))
	var opened [3]atomic.Int64
	var urls [3]string
	for i, u := range f.URLs() {
		urls[i] = secure(t, &tls.Config{Certificates: of.TLS.Certificates}, u, &opened[i])
	}
	file := filepath.Join(t.TempDir(), "workers.toml")
	list := func(n int) {
		var b strings.Builder
		for i, u := range urls[:n] {
			fmt.Fprintf(&b, "[[workers]]\nurl = %q\nid = \"w%d\"\n", u, i+1)
		}
		write(t, file, b.String())
	}
	list(2)
	r := start(t, fromDefaults(fmt.Sprintf("slow_start = \"0s\"\nworkers_file = %q\ntls_ca_file = %q", file, ca)), 2)
	end := r.underLoad(1)
	eventually(t, "both workers have served", func() bool { return opened[0].Load() > 0 && opened[1].Load() > 0 })
	p, c := r.state.Load().pools[0], r.state.Load().conf.Pools[0]
	change := func(n int) {
		t.Helper()
		was := opened[2].Load()
		list(n)
		if err := p.update(c); err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			eventually(t, "the worker that was added serves", func() bool { return opened[2].Load() > was })
		}
	}
	const changes = 40
	for i := range changes {
		change(3 - i%2)
	}
	for i, want := range []int64{1, 1, changes / 2} {
		// A request that chose the third worker just before its removal may need another one.
		if got := opened[i].Load(); got != want && (i < 2 || got < want || got > want+want/20) {
			t.Errorf("worker %d was connected to %d times in %d changes, want %d", i+1, got, changes, want)
		}
	}
	c.HeaderTimeout += time.Second
	if err := p.update(c); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another header_timeout makes another connection", func() bool { return opened[0].Load() == 2 })
	if sent, failed := end(); failed > 0 {
		t.Errorf("%d of %d requests failed", failed, sent)
	}
}
