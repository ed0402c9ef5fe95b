package exchange

import (
	"strings"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

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

// lines writes fields as "Name: value" lines.
func lines(fields []upstream.Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f.Name + ": " + f.Value + "\n")
	}
	return b.String()
}

type listener struct{ told atomic.Int32 }

func (l *listener) Ended() { l.told.Add(1) }

// rest is a Tail that has been read, or not.
type rest struct {
	strings.Reader
	passed bool
}

func (r *rest) Passed() bool { return r.passed }
