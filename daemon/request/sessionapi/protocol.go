package sessionapi

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// sagemakerProtocol passes a SageMaker call to a worker.
type sagemakerProtocol struct{ call *sagemaker.Call }

// entry returns what a call sets for its request: the pool, the session, its salt, the model and the operation.
func entry(in *message.Inbound, c *sagemaker.Call) message.Entry {
	e := message.Entry{Door: sagemakerProtocol{c}, Pool: c.Endpoint, Session: c.Session, Salt: c.PrefixAwareID,
		Model: in.Get(sagemaker.HeaderAdapter)}
	switch c.Op {
	case sagemaker.Open:
		e.Op = message.Opening
	case sagemaker.Close:
		e.Op = message.Closing
	}
	return e
}

// Target implements exchange.Door.
func (d sagemakerProtocol) Target(p *epoch.Pool) string { return p.InvocationPath }

// Strips implements exchange.Door.
func (d sagemakerProtocol) Strips(name, value string) bool { return d.call.Strip(name, value) }

// Header implements exchange.Door.
func (d sagemakerProtocol) Header(out []upstream.Field, p *epoch.Pool, b session.Binding) []upstream.Field {
	c := d.call
	if c.Stream && c.Accept != "" {
		out = append(out, upstream.Field{Name: "Accept", Value: c.Accept})
	}
	switch {
	case b.Minted:
		out = append(out, upstream.Field{Name: sagemaker.HeaderSession, Value: b.Upstream(c.Session)})
	case c.Op == sagemaker.Open && !c.InBody && p.WorkerSessions == "on":
		out = append(out, upstream.Field{Name: sagemaker.HeaderSession, Value: "NEW_SESSION"})
	}
	return out
}

// EndsStreams implements exchange.Door: an exception of SageMaker's own form ends its streams.
func (d sagemakerProtocol) EndsStreams() bool { return d.call.Stream }

// translate turns a worker's answer into SageMaker's form.
func translate(out *message.Outbound, in *message.Inbound, c *sagemaker.Call) *message.Outbound {
	if in.Seen.Worker == "" { // an error of the router's own has its form already
		return out
	}
	kept := out.Header[:0]
	form := ""
	for _, f := range out.Header {
		if strings.EqualFold(f.Name, "Content-Type") {
			form = f.Value
		}
		if !c.StripAnswer(f.Name) {
			kept = append(kept, f)
		}
	}
	out.Header = kept
	if c.Endpoint == "" {
		return out
	}
	if out.Status < 200 || out.Status > 299 {
		text, _, _ := out.Whole(maxTranslated)
		bad := sagemaker.Translate(out.Status, text)
		out = &message.Outbound{Status: bad.Status, Body: bad.Body()}
		for _, h := range bad.Headers(in.ID) {
			out.SetOnce(h[0], h[1])
		}
		return out
	}
	out.Set(sagemaker.HeaderVariant, in.Seen.Pool)
	if c.Stream {
		src := out.Stream
		if src == nil {
			src = io.NopCloser(bytes.NewReader(out.Body))
		}
		out.Stream, out.Body, out.Length = sagemaker.NewStream(src, exception), nil, -1
		out.Set("Content-Type", sagemaker.StreamType)
		if form != "" {
			out.Set(sagemaker.HeaderContentType, form)
		}
	}
	return out
}

// maxTranslated is what is read of a worker's error for its message, which has 2,048 characters at most.
const maxTranslated = 64 << 10

// exception returns what a stream that broke off ends with.
func exception(err error) sagemaker.StreamError {
	if errors.Is(err, message.ErrDraining) {
		return sagemaker.InternalStreamFailure(message.FaultStopping.Message)
	}
	return sagemaker.ModelBroke(err)
}

var _ message.Protocol = sagemakerProtocol{}
