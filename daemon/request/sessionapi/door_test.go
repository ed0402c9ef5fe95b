package sessionapi

import (
	"io"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// fields returns header fields from name, value, name, value.
func fields(header ...string) (out []upstream.Field) {
	for i := 0; i < len(header); i += 2 {
		out = append(out, upstream.Field{Name: header[i], Value: header[i+1]})
	}
	return out
}

// lines writes fields as "Name: value" lines.
func lines(fields []upstream.Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f.Name + ": " + f.Value + "\n")
	}
	return b.String()
}

// answered returns a request that the worker w in the pool p has answered.
func answered() *message.Inbound {
	in := &message.Inbound{ID: "id-1"}
	in.Seen.Worker, in.Seen.Pool = "w", "p"
	return in
}

func TestEntry(t *testing.T) {
	in := &message.Inbound{Header: fields(sagemaker.HeaderAdapter, "lora")}
	f := func(op sagemaker.Op, want message.Op) {
		t.Helper()
		c := &sagemaker.Call{Op: op, Endpoint: "p", Session: "s", PrefixAwareID: "app"}
		e := entry(in, c)
		if e.Op != want || e.Pool != "p" || e.Session != "s" || e.Salt != "app" || e.Model != "lora" || e.Door == nil {
			t.Errorf("%v: %+v", op, e)
		}
	}
	f(sagemaker.None, message.Use)
	f(sagemaker.Use, message.Use)
	f(sagemaker.Open, message.Opening)
	f(sagemaker.Close, message.Closing)
}

// TestDoorHeader is the table of what a worker is sent of a session.
func TestDoorHeader(t *testing.T) {
	f := func(c sagemaker.Call, keeps string, b session.Binding, want string) {
		t.Helper()
		if got := lines(sagemakerProtocol{&c}.Header(nil, &epoch.Pool{WorkerSessions: keeps}, b)); got != want {
			t.Errorf("%+v, %q, %+v:\n%s\nwant:\n%s", c, keeps, b, got, want)
		}
	}
	minted := session.Binding{Worker: "w", Minted: true}
	const id = "X-Amzn-SageMaker-Session-Id: "
	f(sagemaker.Call{}, "on", session.Binding{}, "")
	f(sagemaker.Call{Op: sagemaker.Use, Session: "s"}, "on", session.Binding{Worker: "w"}, "") // the router alone holds it
	f(sagemaker.Call{Op: sagemaker.Use, Session: "s"}, "auto", minted, id+minted.Upstream("s")+"\n")
	f(sagemaker.Call{Op: sagemaker.Open}, "on", session.Binding{}, id+"NEW_SESSION\n")
	f(sagemaker.Call{Op: sagemaker.Open}, "auto", session.Binding{}, "") // a worker without sessions would refuse it
	f(sagemaker.Call{Op: sagemaker.Open, InBody: true}, "on", session.Binding{}, "")
	f(sagemaker.Call{Stream: true, Accept: "text/plain"}, "on", session.Binding{}, "Accept: text/plain\n")
	f(sagemaker.Call{Accept: "text/plain"}, "on", session.Binding{}, "") // it went on as the client sent it
}

// TestTranslate is the table of answers in SageMaker's form.
func TestTranslate(t *testing.T) {
	f := func(c sagemaker.Call, status int, header []upstream.Field, body string, want int, head, text string) {
		t.Helper()
		out := translate(&message.Outbound{Status: status, Header: header, Body: []byte(body)}, answered(), &c)
		got, _, err := out.Whole(1 << 20)
		if out.Status != want || lines(out.Header) != head || string(got) != text || err != nil {
			t.Errorf("%+v: %d\n%s%s %v\nwant: %d\n%s%s", c, out.Status, lines(out.Header), got, err, want, head, text)
		}
	}
	typed := func() []upstream.Field {
		return fields("Content-Type", "application/json", sagemaker.HeaderNewSession, "its own", "x", "y")
	}
	const plain, variant = "Content-Type: application/json\nx: y\n", "x-Amzn-Invoked-Production-Variant: p\n"
	f(sagemaker.Call{}, 200, typed(), "{}", 200, plain, "{}")
	f(sagemaker.Call{}, 500, typed(), "{}", 500, plain, "{}") // /invocations has the worker's own errors
	f(sagemaker.Call{Endpoint: "p"}, 200, typed(), "{}", 200, plain+variant, "{}")

	bad := sagemaker.Translate(500, []byte(`{"error":{"message":"no"}}`))
	out := translate(&message.Outbound{Status: 500, Header: typed(), Body: []byte(`{"error":{"message":"no"}}`)}, answered(),
		&sagemaker.Call{Endpoint: "p"})
	if out.Status != bad.Status || string(out.Body) != string(bad.Body()) || out.Get(message.HeaderAWSRequest) != "" || out.Get("x") != "" {
		t.Errorf("an error: %d %v %s", out.Status, out.Header, out.Body)
	}

	own := &message.Outbound{Status: 503, Header: typed()}
	if got := translate(own, &message.Inbound{}, &sagemaker.Call{Endpoint: "p"}); got != own || len(got.Header) != 3 {
		t.Errorf("an error of the router's own was changed: %+v", got)
	}
}

// TestTranslateStream: an answer on the stream path is events, also one that came whole, and names the type of what is
// in them.
func TestTranslateStream(t *testing.T) {
	f := func(out *message.Outbound, end string) {
		t.Helper()
		out.Status, out.Header = 200, fields("Content-Type", "text/plain")
		out = translate(out, answered(), &sagemaker.Call{Endpoint: "p", Stream: true})
		text, err := io.ReadAll(out.Stream)
		if out.Body != nil || out.Length != -1 || err != nil || out.Get("Content-Type") != sagemaker.StreamType ||
			out.Get(sagemaker.HeaderContentType) != "text/plain" {
			t.Errorf("%+v, %v", out, err)
		}
		if !strings.Contains(string(text), "hello") || !strings.Contains(string(text), end) {
			t.Errorf("%q; want hello, and then %q", text, end)
		}
	}
	f(&message.Outbound{Body: []byte("hello")}, "")
	f(&message.Outbound{Stream: io.NopCloser(strings.NewReader("hello"))}, "")
	broken := func(err error) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader("hello"), failing{err}))
	}
	f(&message.Outbound{Stream: broken(io.ErrUnexpectedEOF)}, "ModelStreamError")
	f(&message.Outbound{Stream: broken(message.ErrDraining)}, "InternalStreamFailure")
}

// failing is a stream that broke off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
