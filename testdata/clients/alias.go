package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
)

// byAlias has the workers serve the models by names that no client knows.
var byAlias = flag.Bool("alias", false, "let the clients' names of models be aliases, and look for the models' own in "+
	"each byte of an answer")

// target is in each name that no client may see.
const target = "unseen-by-clients"

// served returns the name by which the workers serve a client's model.
func (h *fleet) served(name string) string {
	if h.aliased {
		return name + "-" + target
	}
	return name
}

// modelTables are the aliases of a router file, and what takes the models' own names off the lists.
func (h *fleet) modelTables() (toml string) {
	if !h.aliased {
		return ""
	}
	for _, name := range []string{model, slashed} {
		toml += fmt.Sprintf("[[models]]\nname = %q\nto = [{ model = %q }]\n[[models]]\nname = %[2]q\nhidden = true\n", name,
			h.served(name))
	}
	return toml
}

// leaks are the places in which clients saw a target's name. It is safe for concurrent use.
type leaks struct {
	mu    sync.Mutex // guards all below
	seen  []string
	bytes int // that were looked at
}

// allLeaks are those of all fleets.
var allLeaks leaks

// watched prints what a client that has ended, with an error or without, saw of targets' names, as a check. It returns
// the error. Nothing was watched without -alias.
func (t *total) watched(client string, err error) error {
	l := &allLeaks
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == 0 {
		return err
	}
	if len(l.seen) > 0 {
		t.line(fmt.Sprintf("FAIL %s: %d places with a target's name, the first: %s", client, len(l.seen), l.seen[0]))
	} else {
		t.line(fmt.Sprintf("ok %s no target's name in %d bytes of answers", client, l.bytes))
	}
	l.seen, l.bytes = nil, 0
	return err
}

// watch puts a proxy before the router, which reads what clients get.
func (h *fleet) watch(router string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.ended = append(h.ended, func() { l.Close() })
	h.url = "http://" + l.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client.(*net.TCPConn), router)
		}
	}()
	return nil
}

// relay passes a connection on in both ways, with its half closes.
func relay(client *net.TCPConn, router string) {
	defer client.Close()
	c, err := net.Dial("tcp", router)
	if err != nil {
		return
	}
	server := c.(*net.TCPConn)
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.Copy(server, client)
		if err != nil {
			server.Close() // an abort is an abort to the router too
		} else {
			server.CloseWrite()
		}
	}()
	_, err = io.Copy(io.MultiWriter(client, &spy{}), server)
	if err != nil {
		return
	}
	client.CloseWrite()
	<-done
}

// spy looks for targets' names in what a client gets.
type spy struct{ kept []byte }

// allowed are where a target's name may stand: the header that is for it, and the root in a list of models.
var allowed = [][]byte{[]byte("X-Warmpath-Model: "), []byte(`"root":"`)}

// longest is more than what stands before and behind the word on the line of a name.
const longest = 200

// Write looks at all but the last bytes, which may be the beginning of a name, and keeps what stands before a name.
func (s *spy) Write(p []byte) (int, error) {
	fresh := len(s.kept)
	s.kept = append(s.kept, p...)
	for at := max(0, fresh-len(target)+1); ; {
		i := bytes.Index(s.kept[at:], []byte(target))
		if i < 0 {
			break
		}
		at += i + len(target)
		before := s.kept[max(0, at-longest):at]
		if !isAllowed(before) {
			allLeaks.mu.Lock()
			allLeaks.seen = append(allLeaks.seen, fmt.Sprintf("%q", before))
			allLeaks.mu.Unlock()
		}
	}
	allLeaks.mu.Lock()
	allLeaks.bytes += len(p)
	allLeaks.mu.Unlock()
	s.kept = append(s.kept[:0], s.kept[max(0, len(s.kept)-longest):]...)
	return len(p), nil
}

// isAllowed reports whether a name that ends a text stands where it may.
func isAllowed(text []byte) bool {
	for _, name := range []string{model, slashed} {
		for _, place := range allowed {
			if bytes.HasSuffix(text, fmt.Appendf(nil, "%s%s-%s", place, name, target)) {
				return true
			}
		}
	}
	return false
}
