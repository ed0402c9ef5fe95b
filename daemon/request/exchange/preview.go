package exchange

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Preview is the decision that a request would get.
type Preview struct {
	Pool    string         `json:"pool"`
	Model   string         `json:"model"`
	Refused string         `json:"refused,omitempty"` // the code of the error that the client would get
	Why     string         `json:"why,omitempty"`     // the same in words
	By      []route.Record `json:"decisions"`         // by each strategy, the pool's own first
}

// Foresee decides on a request without sending it: by its pool's own strategy, then by those that others returns for
// the pool. It commits nothing, counts nothing and keeps nothing. It sends no worker a question for token ids: it
// matches a prompt of text by its text.
func Foresee(in *message.Inbound, others func(p *epoch.Pool) []*route.Strategy) Preview {
	r := request{in: in, epoch: in.Epoch, arrived: time.Now()}
	defer r.release()
	r.read.parse(in, "")
	x := Preview{Model: r.read.req.Model}
	if f := r.forbidden(); f != nil {
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	if f := rename(&r); f != nil {
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	x.Model = r.read.req.Model
	pool, silent := r.choosePool()
	if pool == nil {
		f := message.FaultUnknownModel(r.clientModel())
		x.Refused, x.Why = f.Code, f.Message
		return x
	}
	r.pool, x.Pool = pool, pool.Name
	ask := route.Ask{Prompt: r.read.req, Salt: r.read.req.CacheSalt, Claim: r.claim(), Caller: in.Caller.Name,
		Fence: r.fence(), Leg: r.leg(), Prefillers: prefillers(&r), Headers: message.Offered{In: in},
		EndWithWorker: in.Epoch.Sessions.EndWithWorker, Turn: pool.Turn(x.Model, r.fence()), At: r.arrived}
	ask.Claim.Silent = silent
	for _, by := range append([]*route.Strategy{nil}, others(pool)...) {
		ask.By = by
		x.By = append(x.By, foresee(&r, &ask, &x))
	}
	return x
}

// foresee decides once. It writes a verdict that refuses into x.
func foresee(r *request, ask *route.Ask, x *Preview) (told route.Record) {
	v := r.known(r.pool.Choose(&r.choice, ask))
	if v != route.Chosen && v != route.Rejected {
		f := message.FaultNoWorker
		if v != route.Unheard {
			f = r.faultOf(v)
		}
		x.Refused, x.Why = f.Code, f.Message
	}
	var s route.Sketch
	if v == route.Chosen || v == route.Rejected {
		told.Note(&r.choice)
	}
	told.Module, told.Reason = r.choice.Module(), r.choice.Reason()
	if v == route.Rejected && !r.choice.FellBack() {
		told.Reason = "rejected by the strategy"
	}
	s.Take(&r.choice)
	s.Explain(&told)
	told.Frame = nil
	if v == route.Chosen {
		told.Worker = r.choice.First().ID()
	}
	return told
}
