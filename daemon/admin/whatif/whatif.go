// Package whatif answers where a request would go, by each strategy, without sending it.
//
// It asks the pool's own strategy as it serves. It loads those that serve another pool or none for the question and
// closes them after it, so that none of them keeps memory while nobody asks; the compiled modules are cached, and the
// load takes some 10 ms each. Questions wait for one another: a box on a page is no load test.
//
// A question's prompt is read, hashed and forgotten: it enters no index, no log and no record.
//
// What lost: a copy of each strategy kept loaded, 16 MB each for a box that is used once a day. Asking the copies that
// serve other pools: their memory belongs to requests.
package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Question is a request that is not to be sent.
type Question struct {
	Path    string          `json:"path"`    // "" = guessed from the body
	Session string          `json:"session"` // the value that the configured header would have; "" = none
	Body    json.RawMessage `json:"body"`
}

// Lab answers questions. It is safe for concurrent use.
type Lab struct {
	Epoch func() *exchange.Epoch                               // in force
	Names func() []string                                      // of the strategies that there are
	Load  func(pool, strategy string) (*route.Strategy, error) // for a pool, with the options that it would have there

	mu sync.Mutex // one question at a time
}

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
	in := &exchange.Inbound{Epoch: l.Epoch(), Method: "POST", Path: q.Path, Body: q.Body, Caller: everybody(),
		Endpoint: exchange.Classify("POST", q.Path)}
	if in.Endpoint.Role == exchange.Nobody || in.Endpoint.Role == exchange.Malformed {
		return nil, fmt.Errorf("the router serves no POST %.100q", q.Path)
	}
	if h := in.Epoch.Sessions.Header; h != "" && q.Session != "" {
		in.Header = append(in.Header, upstream.Field{Name: h, Value: q.Session})
	}
	a := new(Answer)
	var loaded []*route.Strategy
	defer func() {
		for _, s := range loaded {
			s.Close(context.Background())
		}
	}()
	a.Preview = exchange.Foresee(in, func(p *exchange.Pool) []*route.Strategy {
		own := ""
		if s := p.Strategy.Strategy(); s != nil {
			own = s.Name()
		}
		for _, name := range l.Names() {
			if name == own {
				continue
			}
			s, err := l.Load(p.Name, name)
			if err != nil {
				a.Failed = append(a.Failed, fmt.Sprintf("%s: %v", name, err))
				continue
			}
			loaded = append(loaded, s)
		}
		return loaded
	})
	return a, nil
}

// everybody is the caller where no key is asked for.
func everybody() *gate.Caller {
	caller, _ := (*gate.Keys)(nil).Check("", "")
	return caller
}

// pathOf guesses where a body belongs.
func pathOf(body []byte) string {
	var has map[string]json.RawMessage
	_ = json.Unmarshal(body, &has) // one that is no JSON goes on to a worker, whose answer is the error
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
