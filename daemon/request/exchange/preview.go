package exchange

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Preview is the decision that a request would get.
type Preview struct {
	Pool    string          `json:"pool"`
	Model   string          `json:"model"`
	Refused string          `json:"refused,omitempty"` // the code of the error that the client would get
	Why     string          `json:"why,omitempty"`     // the same in words
	By      []record.Record `json:"decisions"`         // by each strategy, the pool's own first
}

// Foresee decides on a request without sending it: by its pool's own strategy, then by those that others returns for
// the pool. It commits nothing, counts nothing and keeps nothing. It sends no worker a question for token ids: it
// matches a prompt of text by its text.
func Foresee(in *message.Inbound, others func(p *epoch.Pool) []*route.Strategy) Preview {
	e := Exchange{req: admission.Request{In: in, Epoch: in.Epoch, Arrived: time.Now()}}
	defer e.Release()
	r := &e.req
	r.Read.Parse(in, "")
	x := Preview{Model: r.Read.Req.Model}
	if f := r.Forbidden(); f != nil {
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	if f := admission.Rename(r); f != nil {
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	x.Model = r.Read.Req.Model
	pool, silent := r.ChoosePool()
	if pool == nil {
		f := message.FaultUnknownModel(r.ClientModel())
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	r.Pool, x.Pool = pool, pool.Name
	if f := r.ReadWeights(); f != nil {
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	ask := route.Ask{Prompt: r.Read.Req, Salt: r.Read.Req.CacheSalt, Claim: r.Claim(), Caller: in.Caller.Name,
		Fence: r.Fence(), Leg: r.Leg(), Prefillers: admission.Prefillers(r), Headers: message.Offered{In: in},
		EndWithWorker: in.Epoch.Sessions.EndWithWorker, Turn: pool.Turn(x.Model, r.Fence()), At: r.Arrived}
	ask.Claim.Silent = silent
	for _, by := range append([]*route.Strategy{nil}, others(pool)...) {
		ask.By = by
		x.By = append(x.By, foresee(&e, &ask, &x))
	}
	return x
}

// foresee decides once. It writes a verdict that refuses into x.
func foresee(e *Exchange, ask *route.Ask, x *Preview) (told record.Record) {
	v := e.req.Known(e.req.Pool.Choose(&e.choice, ask))
	if v != route.Chosen && v != route.Rejected {
		f := message.FaultNoWorker
		if v != route.Unheard {
			f = e.faultOf(v)
		}
		x.Refused, x.Why = f.Code, f.Message
	}
	var s route.Sketch
	if v == route.Chosen || v == route.Rejected {
		e.choice.Note(&told)
	}
	told.Module, told.Reason = e.choice.Module(), e.choice.Reason()
	if v == route.Rejected && !e.choice.FellBack() {
		told.Reason = "rejected by the strategy"
	}
	s.Take(&e.choice)
	s.Explain(&told)
	told.Frame = nil
	if v == route.Chosen {
		told.Worker = e.choice.First().ID()
	}
	return told
}
