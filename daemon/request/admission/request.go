package admission

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Request is what is known of a request between its arrival and the end of its answer. One goroutine at a time uses it:
// the handler's until the response head, then the one that reads the answer.
type Request struct {
	Journal *journal.Journal
	Lethal  *Lethal // nil in a preview
	In      *message.Inbound
	ID      string // that the worker gets
	Epoch   *epoch.Epoch
	Kept    *Kept        // nil in a preview
	Alias   *names.Alias // that the client named; nil = its model's own name
	Entry   message.Entry
	Arrived time.Time

	Rest *Rest // nil = a client's request

	Pool      *epoch.Pool
	Limits    allowance // of the caller's key
	Read      Reading
	Place     *Place         // in the pool's queue; nil = it was in none
	Fell      names.Reason   // why another model has not served the request before; 0 = none had it
	least     worker.Weights // that the client asks for; 0 = any
	reference string         // the file or job that the body of a new one names; "" = none
	Cookie    string         // the one to set, if the answer is a success; "" = none
}

// Ask asks the worker at a URL for something beside the request, and reads its JSON into said. If the worker gives no
// such answer within wait, said stays as it is.
func (r *Request) Ask(ctx context.Context, wait time.Duration, url string, q upstream.Request, said any) {
	client := r.Pool.Clients.Get(url)
	if client == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	q.Header = message.WorkerHeader(nil, r.In, r.ID, r.Pool, nil)
	resp, err := client.Do(ctx, &q)
	if err != nil {
		return
	}
	defer resp.Close()
	if text, err := epoch.ReadAnswer(resp, 16<<20); err == nil && resp.Status == http.StatusOK {
		_ = json.Unmarshal(text, said)
	}
}

// Rest is a request for the rest of an answer that a worker broke off.
type Rest struct {
	Of   *message.Inbound // the client's request
	From *worker.Worker   // that broke off
	Left int8             // how often another worker may go on with this answer

	Pauses int8 // that have ended parts of it: these do not count in Left, up to MaxPauses
}

// MaxPauses bounds the pauses of workers that one answer outlives.
const MaxPauses = 64

// OfClient returns the client's request.
func (r *Request) OfClient() *message.Inbound {
	if r.Rest != nil {
		return r.Rest.Of
	}
	return r.In
}

// Kept is what a Server keeps for its requests.
type Kept struct {
	Overflow overflow.Store // bodies until they can be routed
	models   names.Book     // of sessions under aliases
	Jobs     underway       // of keys with limits
}

// Parse reads the body. What opens or closes a session has no prompt.
func (r *Request) Parse() {
	r.Read.Parse(r.In, r.Entry.Model)
	if r.Entry.Op == message.Opening || r.Entry.Op == message.Closing {
		r.Read.Computes, r.Read.Salted = false, false
	}
}

// Log returns the logger that names the request's pool.
func (r *Request) Log() *slog.Logger { return r.Journal.Of(r.Pool) }

// Shape returns the shape of the endpoint's errors.
func (r *Request) Shape() message.Shape { return r.In.Endpoint.Shape }

// PoolName returns the name of the pool, or "" if none has been chosen.
func (r *Request) PoolName() string {
	if r.Pool == nil {
		return ""
	}
	return r.Pool.Name
}

// Own reports whether the router itself sends the request, and not a client. No limit applies to it, and it binds no
// session.
func (r *Request) Own() bool { return r.Entry.Op == message.Prefilling || r.Entry.Op == message.Moving }

// Queue returns the request's place in its pool's queue, which it has not entered yet.
func (r *Request) Queue() *Place {
	if r.Place == nil {
		r.Place = &Place{meter: r.Journal.Meter, in: r.In, leg: r.Own()}
	}
	return r.Place
}

// Consumed reports whether a failed attempt may have used up part of the body.
func (r *Request) Consumed() bool { return r.In.Tail != nil && r.In.Tail.Passed() }

// Release gives back the place in the queue and what was read of the body.
func (r *Request) Release() {
	r.Place.Leave()
	r.Read.release()
}

// Target returns the request's path at the worker, without the query.
func (r *Request) Target() string {
	if r.Entry.Door != nil {
		return r.Entry.Door.Target(r.Pool)
	}
	return r.In.Path
}

// Generates reports whether the answer is generated text.
func (r *Request) Generates() bool { return r.Read.Req.Kind.Generates() }

// Understood reports whether the router reads answers of the request's kind.
func (r *Request) Understood() bool { return r.Read.Req.Kind != prompt.Other }

// PayRetry takes a repeat from the pool's budget.
func (r *Request) PayRetry() bool {
	if r.Pool.Workers.MayRetry(time.Now()) {
		return true
	}
	r.Journal.Meter.Shed(r.Pool.Name, "retry_budget")
	return false
}

// LostAt records that a worker, which got the request at sent, lost its connection before the end of its answer, or
// that its engine is dead. Health checks after since show whether its process lives on.
func (r *Request) LostAt(w *worker.Worker, sent, since time.Time) {
	if r.In.Method == http.MethodPost {
		r.Lethal.Lose(r.OfClient(), Loss{Pool: r.Pool.Workers, Worker: w.Key(), Sent: sent, At: since})
	}
}

// EndsStreams reports whether the door itself ends a stream that broke off.
func (r *Request) EndsStreams() bool { return r.Entry.Door != nil && r.Entry.Door.EndsStreams() }

// FullFor returns the answer to a request whose session lives at b: the others may have room.
func (r *Request) FullFor(b session.Binding) message.Fault {
	f := message.FaultFull
	switch {
	case b.Worker != "":
		f.Message = "the session's worker has as much to do as it may have; try again shortly"
	case len(r.In.Caller.Workers) > 0:
		f.Message = "every worker that this API key may use (keys.workers) has as much to do as it may have; try again" +
			" shortly"
	}
	return f
}

// maxNamed bounds how many models an error names.
const maxNamed = 8

// UnlistedModel returns the fault for a model that the pool serves and none of its workers lists. Most likely one of
// the two names is misspelt, so the fault names the models listed, if explain is on, to callers who may use any model.
func (r *Request) UnlistedModel() message.Fault {
	f := message.FaultUnknownModel(r.ClientModel())
	f.Message += r.theyList()
	return f
}

// AwayModel returns the fault for a model that no worker has which is up. Those of the pool may list others.
func (r *Request) AwayModel() message.Fault {
	f := message.FaultNoWorker
	if len(r.In.Caller.Workers) > 0 {
		f.Message = "no worker that this API key may use (keys.workers) is up for this request; try again shortly"
		return f
	}
	if model := r.Read.Req.Model; !r.Pool.Patterns.Names(model) && !r.Pool.Workers.ListedAnywhere(model, true) &&
		len(r.Pool.Listed(r.Arrived, 1, r.Epoch.Names.Hides)) > 0 {
		f.Cause = message.UnknownToAll // more workers would not help
	}
	if others := r.theyList(); others != "" && r.Pool.Patterns.Names(r.Read.Req.Model) {
		f.Message = "no worker that is up lists the model " + strconv.Quote(gate.Cut(r.ClientModel())) +
			"; try again shortly" + others
	}
	return f
}

// theyList returns words for the models that the pool's workers list, "" if they list none, or the client may not know.
func (r *Request) theyList() string {
	if !r.Epoch.Explain || r.Alias != nil || !r.In.Caller.Allows("") || len(r.In.Caller.Workers) > 0 {
		return ""
	}
	var names []string
	for _, m := range r.Pool.Listed(r.Arrived, maxNamed, r.Epoch.Names.Hides) {
		names = append(names, strconv.Quote(gate.Cut(m)))
	}
	if len(names) == 0 {
		return ""
	}
	return "; those of its pool list " + strings.Join(names, ", ")
}

// HeaderModel has the target of an alias.
const HeaderModel = "X-Warmpath-Model"

// ClientModel returns the model by the name that the client has for it.
func (r *Request) ClientModel() string {
	if r.Alias != nil {
		return r.Alias.Name
	}
	return r.Read.Req.Model
}

// TellModel writes the target of an alias into the answer's header, and the reason for a fallback.
func (r *Request) TellModel(out *message.Outbound) {
	if r.Alias != nil && r.In.Seen.Model != "" { // what is read of a stored response names none
		out.Set(HeaderModel, r.In.Seen.Model)
	}
	if r.Fell != 0 {
		out.Set(HeaderFallback, r.Fell.String())
	}
}

// HideTarget writes the alias into a worker's error of a whole answer.
func (r *Request) HideTarget(status int, text []byte) []byte {
	if r.Alias == nil || status < 400 {
		return text
	}
	return names.Hide(text, r.In.Seen.Model, r.Alias.Name)
}

// ClientHeader returns the fields of the worker's answer that the client gets, with the alias in them.
func (r *Request) ClientHeader(h upstream.Header) []upstream.Field {
	out := message.ClientHeader(h)
	if r.Alias != nil {
		for i := range out {
			out[i].Value = names.Hide(out[i].Value, r.In.Seen.Model, r.Alias.Name)
		}
	}
	return out
}

// A request whose model cannot serve it may go to the fallback of the name that the client sent. It is then chosen and
// sent anew, by an Exchange of its own. That is decided before its refusal is counted, and before the client has a
// byte.

// HeaderFallback says why another model than the first has answered: down, full or context.
const HeaderFallback = "X-Warmpath-Fallback"

// MayFall reports whether the request may go to a fallback for that reason.
func (r *Request) MayFall(why names.Reason, b session.Binding) bool {
	if r.Alias.After(why) == nil || r.Entry.Door != nil || r.Entry.Op != message.Use || r.Entry.Session != "" ||
		r.Consumed() || r.In.Endpoint.Adapters || r.In.Endpoint.ID != "" || r.reference != "" ||
		r.Read.Req.PreviousResponse != "" {
		return false
	}
	return b.Worker == "" || b.Kind == session.Key && why != names.Full // else it waits for its own worker alone
}

// Hides returns why the body may name what its client may not have, or nil.
func (r *Request) Hides() *message.Fault {
	switch {
	case r.Pool.Guards() && isWide(r.In.Body):
		return &faultWide
	case r.Read.Req.Hints && r.Pool.Pairing == nil && r.Pool.Hints != "pass": // where prompts are split they are taken out
		return &faultHints
	}
	return r.Read.hidesResponse(r.In, r.Target())
}

// ChoosePool returns the pool that the path names, that of the session, that of the worker that made the response, or
// that of the model. silent: the store did not answer for one of the pools whether it has the session.
func (r *Request) ChoosePool() (p *epoch.Pool, silent bool) {
	if p := r.Epoch.Named(r.Entry.Pool); p != nil {
		return p, false
	}
	if r.Entry.Session != "" {
		p, s := r.Epoch.Holding(r.In.Opened(r.Entry.Session), r.Arrived)
		if p != nil {
			return p, false
		}
		silent = s == session.Silent
	}
	for i, id := range r.Responses() {
		if id == "" || i == 0 && !r.In.Endpoint.Job && !r.In.Endpoint.Creates { // the body names a model too
			continue
		}
		p, s := r.Epoch.Living(r.In.Stored(id), r.Arrived)
		if p != nil {
			return p, false
		}
		silent = silent || s == session.Silent
	}
	if model := r.Read.Req.Model; model != "" || !r.In.Endpoint.Adapters {
		return r.Epoch.For(model), silent
	}
	return r.Epoch.For(ReadCall(r.In.Body).Name), silent // where requests for the adapter go
}

// Queues reports whether a request of that verdict waits, if its pool has a queue. One that could be sent waits too
// while others do: it would take the place that one of them waits for.
func (r *Request) Queues(v route.Verdict) bool {
	switch q := r.Pool.Queue; {
	case q == nil:
		return false
	case v == route.Chosen:
		return q.ForRoom() > 0
	}
	return r.Patient(v)
}

// Patient reports whether a verdict is one that time may change.
func (r *Request) Patient(v route.Verdict) bool {
	return v == route.Full || v == route.Held || v == route.Fenced && r.WantsWeights() ||
		r.LacksWorkers(v) && r.Pool.WaitEmpty
}

// LacksWorkers reports whether a verdict is one that another worker may change: none is up, or a pool whose workers
// come on demand has none for the caller's key.
func (r *Request) LacksWorkers(v route.Verdict) bool {
	return v == route.NoWorker || v == route.Fenced && r.Pool.Waker != nil && !r.WantsWeights()
}

// Known returns a verdict as the client gets it. A worker without a health check is no worker yet. A model that the
// pool names and no worker has is one whose workers are away, and not a client's mistake; and so is one to which an
// alias with a fallback leads. A pool that has prefillers alone waits for decoders.
func (r *Request) Known(v route.Verdict) route.Verdict {
	switch {
	case v == route.UnknownModel && r.WantsWeights() && r.Pool.Workers.ListedAnywhere(r.Read.Req.Model, false):
		return route.Fenced // other workers have it, with older weights
	case v == route.Unheard, v == route.UnknownModel &&
		(r.Pool.Patterns.Names(r.Read.Req.Model) || r.Alias.After(names.Down) != nil),
		v == route.Fenced && len(r.In.Caller.Workers) == 0 && !r.Own() && !r.WantsWeights() && !NeedsWhole(r):
		return route.NoWorker
	}
	return v
}

// Missing is known; if no worker is up, the scaler is called.
func (r *Request) Missing(v route.Verdict) route.Verdict {
	v = r.Known(v)
	if r.LacksWorkers(v) && r.Pool.Waker != nil {
		r.Pool.Waker.Wake()
	}
	return v
}

// ReadWeights reads the least version of the weights that the client asks for, and returns the fault of one that is no
// number.
func (r *Request) ReadWeights() *message.Fault {
	if r.In.Endpoint.ID != "" { // nothing is computed: what the path names is where it was made
		return nil
	}
	text := r.In.Get(message.HeaderWeightsMin)
	r.least = worker.WeightsNamed(text)
	if text != "" && !r.WantsWeights() {
		return &message.FaultWeightsMin
	}
	return nil
}

// WantsWeights reports whether the client asks for a least version of the weights.
func (r *Request) WantsWeights() bool { return r.least != 0 }

// Fence returns the labels of the workers that alone may get the request.
func (r *Request) Fence() worker.Fence { return r.recent(r.fence()) }

// OwnFence returns the labels that the request's key and weights ask for, in any pool.
func (r *Request) OwnFence() worker.Fence { return r.recent(r.In.Caller.Workers) }

// recent adds the least version of the weights to a fence.
func (r *Request) recent(f worker.Fence) worker.Fence {
	if r.WantsWeights() {
		return append(slices.Clip(f), r.least.AtLeast())
	}
	return f
}

// fence is Fence without the least version of the weights.
func (r *Request) fence() worker.Fence {
	switch {
	case r.Pool == nil:
		return r.In.Caller.Workers
	case r.Entry.Op == message.Prefilling:
		fence := slices.Concat(worker.Fence(r.In.Caller.Workers), r.Pool.Pairing.Prefillers)
		if m := r.Entry.Mate; m != nil {
			fence = append(fence, m.Same...)
		}
		return fence
	case NeedsWhole(r):
		return append(r.Pool.Pairing.Answering(r.In.Caller.Workers), worker.Not+worker.DecodeLabel)
	}
	return r.Pool.Pairing.Answering(r.In.Caller.Workers)
}

// Shares reports whether the prefillers of the pool answer too.
func (r *Request) Shares() bool { return r.Pool.Pairing != nil && r.Pool.Pairing.Shared }

// Leg returns the part of the request that a worker is chosen for.
func (r *Request) Leg() route.Leg {
	switch {
	case r.Pool == nil || r.Pool.Pairing == nil:
		return route.Whole
	case r.Entry.Op == message.Prefilling:
		return route.Prefill
	case HasPair(r):
		return route.Answer
	}
	return route.Whole
}

// HasRoles reports whether a request is one with a body, of a pool with roles.
func HasRoles(r *Request) bool { return r.Pool.Pairing != nil && guards(r) }

// guards reports whether a request is one whose body must not name another worker to a worker.
func guards(r *Request) bool {
	op := r.Entry.Op
	return r.Pool.Guards() && (op == message.Use || op == message.Continuing) && r.In.Method == http.MethodPost
}

// GuardsWhole is guards, if memory has all of the body.
func GuardsWhole(r *Request) bool { return guards(r) && r.In.Tail == nil && r.In.Kept == nil }

// IsWhole reports whether memory has all of the body of such a request, so that another one may take the place of it.
func IsWhole(r *Request) bool { return HasRoles(r) && r.In.Tail == nil && r.In.Kept == nil }

// HasPair reports whether another worker than the one that answers may compute the prompt of a request. Before the
// prompts are hashed it counts them as one.
func HasPair(r *Request) bool {
	req := r.Read.Req
	return IsWhole(r) && r.Generates() && req.HasPrompt && r.Read.Clear &&
		((!req.BypassesCache && !pair.NamesOwn(req.Kind, r.In.Body)) || !r.Pool.Pairing.Connector.Alone()) &&
		!pair.CutByAnswer(r.In.Body) &&
		r.Pool.Pairing.Connector.Carries(len(req.Chains), req.N)
}

// NeedsWhole reports whether one worker must do all of a request, which cannot be split, and the decode servers of the
// pool serve nothing alone.
func NeedsWhole(r *Request) bool {
	return HasRoles(r) && !r.Pool.Pairing.Connector.Alone() && r.Generates() && !HasPair(r)
}

// FaultWhole returns the fault of such a request in a pool without a worker for it: what keeps it from being split, and
// what its client or the operator can do.
func FaultWhole(r *Request) message.Fault {
	why, remedy := "this router cannot read its prompt", "send the prompt as text, in JSON"
	switch req := r.Read.Req; {
	case !IsWhole(r):
		why, remedy = "its body is over server.buffer_body_bytes", "send a shorter one, or have that limit raised"
	case req.PreviousResponse != "":
		why, remedy = "it goes on from a stored response (previous_response_id)", "send the whole conversation"
	case !r.Pool.Pairing.Connector.Carries(1, req.N):
		why, remedy = "it asks for several answers (n)", "send a request for each"
	case pair.CutByAnswer(r.In.Body):
		why, remedy = "an engine may cut its prompt to what the answer leaves of the context (truncation)", "cut it yourself"
	}
	return message.Fault{Status: 400, Kind: "invalid_request_error", Code: "cannot_split",
		Message: "the workers of this pool each do a part of a request (connector " + string(r.Pool.Pairing.Connector) +
			"), and this one cannot be split: " + why + "; " + remedy +
			`, or have a worker added that serves alone (role = "both")`}
}

// Prefillers returns the labels of the workers that a strategy may name for the prompt of a request, nil if it may not.
func Prefillers(r *Request) worker.Fence {
	if !HasPair(r) {
		return nil
	}
	return slices.Concat(worker.Fence(r.In.Caller.Workers), r.Pool.Pairing.Prefillers)
}

// AdapterCall is the body of a call that loads or unloads an adapter.
type AdapterCall struct {
	Name    string `json:"lora_name"`
	InPlace bool   `json:"load_inplace"`
}

// ReadCall reads the body of a call. What it lacks is zero: the worker says what is wrong with it.
func ReadCall(body []byte) (call AdapterCall) {
	_ = json.Unmarshal(body, &call)
	return call
}
