package strategies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/host"
)

// Question is a request that is not to be sent.
type Question struct {
	Path    string          `json:"path"`    // "" = guessed from the body
	Key     string          `json:"key"`     // name of the key that it would show; "" = none, and no key is asked for
	Session string          `json:"session"` // its name, in the first header field of sessions.identity; "" = none
	Body    json.RawMessage `json:"body"`
}

// Lab answers questions. It is safe for concurrent use.
type Lab struct {
	host    *host.Host
	process Process

	mu sync.Mutex // one question at a time
}

// NewLab asks the strategies of the configuration in force.
func NewLab(h *host.Host, p Process) *Lab { return &Lab{host: h, process: p} }

// Answer has the decisions, and the strategies that could not be asked.
type Answer struct {
	exchange.Preview
	Failed []string `json:"failed,omitempty"`
}

// errBody names what a question needs.
var errBody = errors.New(`send {"body": {the request, as a client would send it}, "path": "/v1/chat/completions"}`)

// Ask answers a question.
func (l *Lab) Ask(q Question) (*Answer, error) {
	if len(q.Body) == 0 || q.Body[0] != '{' {
		return nil, errBody
	}
	if q.Path == "" {
		q.Path = pathOf(q.Body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	served := l.process.Served()
	caller := callerOf(served, q.Key)
	if caller == nil {
		return nil, fmt.Errorf("there is no [[keys]] of the name %.40q", q.Key)
	}
	in := &message.Inbound{Epoch: served, Method: "POST", Path: q.Path, Body: q.Body, Caller: caller,
		Endpoint: message.Classify("POST", q.Path)}
	if in.Endpoint.Role == message.Nobody || in.Endpoint.Role == message.Malformed {
		return nil, fmt.Errorf("the router serves no POST %.100q", q.Path)
	}
	if h := in.Epoch.Sessions.Identity.First(); h != "" && q.Session != "" {
		in.Header = append(in.Header, upstream.Field{Name: h, Value: q.Session})
	}
	a := new(Answer)
	var loaded []*route.Strategy
	defer func() {
		for _, s := range loaded {
			s.Close(context.Background())
		}
	}()
	a.Preview = exchange.Foresee(in, func(p *epoch.Pool) []*route.Strategy {
		chain := p.Strategy.Strategy().Chain()
		c := l.process.Configuration()
		for _, name := range names(c) {
			if slices.ContainsFunc(chain, func(s *host.Strategy) bool { return s.Name() == name }) {
				continue
			}
			s, err := readFor(l.host, c, p.Name, name)
			if err != nil {
				a.Failed = append(a.Failed, fmt.Sprintf("%s: %v", name, err))
				continue
			}
			p.Owns.Copy(s)
			if len(chain) > 1 {
				s.Behind(chain[:len(chain)-1])
			}
			loaded = append(loaded, s)
		}
		return loaded
	})
	return a, nil
}

// callerOf returns the caller of the key with that name, or nil. If name is empty, it returns the caller that is used
// without [[keys]].
func callerOf(e *epoch.Epoch, name string) *gate.Caller {
	if name != "" {
		return e.Keys.Named(name)
	}
	caller, _ := (*gate.Keys)(nil).Check("", "")
	return caller
}

// pathOf guesses where a body belongs.
func pathOf(body []byte) string {
	var has map[string]json.RawMessage
	_ = json.Unmarshal(body, &has) // a body that is not JSON goes to a worker, which answers with the error
	for _, guess := range []struct{ field, path string }{
		{"messages", "/v1/chat/completions"}, {"prompt", "/v1/completions"}, {"query", "/v1/rerank"},
		{"documents", "/v1/rerank"}, {"instructions", "/v1/responses"}, {"max_output_tokens", "/v1/responses"},
		{"encoding_format", "/v1/embeddings"}, {"input", "/v1/responses"},
	} {
		if _, ok := has[guess.field]; ok {
			return guess.path
		}
	}
	return "/v1/chat/completions"
}
