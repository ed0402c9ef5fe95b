package exchange

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/relocate"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// keep has the pool's book keep a request that a worker answers, and take what the strategy wishes for its cache.
func (e *Exchange) keep(w *worker.Worker) {
	turn, book, wishes := e.turn(w), &e.req.Pool.Book, route.Wishes(&e.choice)
	if turn != nil {
		turn.Ends = turn.Ends || slices.ContainsFunc(wishes, relocate.Wish.Ends)
		book.Answered(turn, time.Now())
	}
	if len(wishes) > 0 {
		e.req.In.Seen.Wished(book.Wish(turn, wishes, time.Now()))
	}
}

// turn returns a request as the book keeps it, nil if the same prompt cannot be sent to another worker later: some of
// the body is gone, or a state of the worker belongs to it.
func (e *Exchange) turn(w *worker.Worker) *relocate.Turn {
	in, req, book := e.req.In, e.req.Read.Req, &e.req.Pool.Book
	if most := book.Keeps(); most == 0 || len(in.Body) > most {
		return nil
	}
	name := e.choice.Session()
	if in.Tail != nil || in.Kept != nil || in.Method != http.MethodPost || e.req.Entry.Op != message.Use ||
		e.req.Entry.Door != nil || e.req.Pool.Pairing != nil || !req.Kind.Generates() || len(req.Chains) != 1 ||
		req.PreviousResponse != "" || name.ID != "" && name.Kind != session.Key {
		return nil
	}
	r := &relocate.Request{Method: in.Method, Path: strings.Clone(in.Path), Query: strings.Clone(in.Query),
		Body: slices.Clone(in.Body), Caller: in.Caller, Salt: e.req.Entry.Salt, Model: e.req.Entry.Model,
		Served: strings.Clone(req.Model), Known: route.Talk(&e.choice),
		Weights: uint64(route.Keeps(&e.choice))}
	for _, f := range in.Header {
		r.Header = append(r.Header, upstream.Field{Name: strings.Clone(f.Name), Value: strings.Clone(f.Value)})
	}
	if e.choice.SessionKind() != "" {
		r.Session = name
	}
	ask := route.Asked(&e.choice)
	r.Named = ask.Claim.Key
	r.Named.ID, r.Named.Tenant = strings.Clone(r.Named.ID), strings.Clone(r.Named.Tenant)
	return &relocate.Turn{Worker: w.ID(), Hashes: req.Chains[0].Hashes, Tokens: in.Seen.PromptTokens, Request: r,
		Ends: ask.Claim.Final}
}

// Move sends a worker a piece of the last prompt of a conversation, and returns which worker has it now, and how many
// of its tokens that had cached, 0 if it did not say. It charges no key. Without a worker that takes the prompt now it
// returns an error.
func (s *Server) Move(ctx context.Context, in *epoch.Epoch, pool string, r *relocate.Move) (string, int, error) {
	body := r.Body
	if !r.Whole {
		body = relocate.Part(body, r.Share())
		if body == nil {
			return "", 0, errors.New("the prompt cannot be cut")
		}
	}
	endpoint := message.Classify(r.Method, r.Path)
	short := pair.Transfer{Kind: endpoint.Kind}
	req := &message.Inbound{Epoch: in, Endpoint: endpoint, Method: r.Method, Path: r.Path, Query: r.Query,
		Body: short.Prefill(body), ID: "move-" + rand.Text(), Caller: r.Caller}
	req.SetHeader(r.Header)
	v := worker.Weights(r.Weights)
	if p := in.Named(pool); v != 0 && p != nil && !p.Workers.Keeps("", v, time.Now()) { // somebody has that version
		kept := *r.Caller
		kept.Workers = append(slices.Clip(kept.Workers), v.Only())
		req.Caller = &kept
	}
	e := s.Begin(req, message.Entry{Pool: pool, Op: message.Moving, Salt: r.Salt, Model: r.Model,
		To: r.To, Held: r.Held})
	e.req.Journal = s.journal.Legs
	e.SendOnce()
	out := e.Serve(ctx)
	_, _, err := out.Whole(1 << 20)
	switch {
	case err != nil:
		return "", 0, err
	case e.By() == nil && ctx.Err() != nil && len(req.Seen.Attempts) > 0: // as a worker that is paused
		return "", 0, fmt.Errorf("worker %s did not answer in time", req.Seen.Attempts[len(req.Seen.Attempts)-1].Worker)
	case e.By() == nil && ctx.Err() != nil:
		return "", 0, errors.New("no worker had room in time")
	case e.By() == nil:
		return "", 0, fmt.Errorf("no worker took it: %s", req.Seen.End)
	case out.Status != http.StatusOK: // its words may repeat the prompt, and errors are logged
		return "", 0, fmt.Errorf("worker %s answered %d", e.By().ID(), out.Status)
	}
	return e.By().ID(), req.Seen.Usage.Cached, nil
}
