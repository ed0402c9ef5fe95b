package admission

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// callerOf returns the caller of a key that is for these models.
func callerOf(t *testing.T, models ...string) *gate.Caller {
	t.Helper()
	c, ok := gate.NewKeys([]gate.Key{{Name: "bob", Secret: "s", Models: models}}).Check("", "s")
	if !ok {
		t.Fatal("the key is not known")
	}
	return c
}

// anybody returns the caller where no key is asked for.
func anybody() *gate.Caller {
	c, _ := (*gate.Keys)(nil).Check("", "")
	return c
}

// inbound returns a request with header fields as name, value, name, value.
func inbound(method, path, body string, header ...string) *message.Inbound {
	in := &message.Inbound{Endpoint: message.Classify(method, path), Method: method, Path: path, Body: []byte(body), Caller: anybody(),
		Account: new(account.Books).Open()}
	for i := 0; i < len(header); i += 2 {
		in.Header = append(in.Header, upstream.Field{Name: header[i], Value: header[i+1]})
	}
	return in
}

// rest is a Tail that has been read, or not.
type rest struct {
	strings.Reader
	passed bool
}

func (r *rest) Passed() bool { return r.passed }

// watched learns the numbers under which a pool's workers take health checks.
type watched struct {
	ids  map[string]uint64
	list func(id uint64) // reads a worker's models; nil = nobody does
}

func (w *watched) Watch(id uint64, url, _ string) { w.ids[url] = id }
func (w *watched) WatchHealth(uint64)             {}
func (w *watched) Unwatch(uint64)                 {}
func (w *watched) CheckSoon(uint64)               {}
func (w *watched) ScrapeSoon(uint64)              {}

func (w *watched) ListSoon(id uint64) {
	if w.list != nil {
		go w.list(id)
	}
}
