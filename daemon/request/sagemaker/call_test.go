package sagemaker

import (
	"strings"
	"testing"
)

// head is a request's fields as a client sends them; lookup finds them as the daemon does.
type head map[string]string

func (h head) lookup(name string) (string, bool) {
	for n, v := range h {
		if strings.EqualFold(n, name) {
			return v, true
		}
	}
	return "", false
}

func (h head) get(name string) string {
	v, _ := h.lookup(name)
	return v
}

func TestPath(t *testing.T) {
	f := func(path, endpoint string, stream, ok bool) {
		t.Helper()
		if e, s, k := Path(path); e != endpoint || s != stream || k != ok {
			t.Errorf("%q: %q, stream %v, %v; want %q, %v, %v", path, e, s, k, endpoint, stream, ok)
		}
	}
	f("/endpoints/llama-3/invocations", "llama-3", false, true)
	f("/endpoints/llama-3/invocations-response-stream", "llama-3", true, true)
	f("/endpoints/my%20ep%2F%C3%BC/invocations", "my ep/ü", false, true) // boto3 checks nothing
	f("/endpoints/%zz/invocations", "%zz", false, true)
	f("/endpoints//invocations", "", false, true)
	f("/endpoints/a/b/invocations", "", false, false)
	f("/endpoints/a/invocations/", "", false, false)
	f("/endpoints/a/async-invocations", "", false, false)
	f("/endpoints/a", "", false, false)
	f("/invocations", "", false, false)
	f("/v1/endpoints/a/invocations", "", false, false)
}

const plainPath, namedPath, streamPath = "/invocations", "/endpoints/e/invocations", "/endpoints/e/invocations-response-stream"

// none stands for a head without the field.
const none = "-"

func TestWhatACallDoesToASession(t *testing.T) {
	f := func(path, session, requestType, want string) {
		t.Helper()
		h := head{}
		if session != none {
			h["X-Amzn-Sagemaker-Session-Id"] = session
		}
		c, err := Read(path, h.lookup, requestType)
		got := c.Op.String() + " " + c.Session
		if err != nil {
			got = err.Type
			if err.Status != 400 || err.Message == "" || c.Op != None {
				t.Errorf("%q, %q: %+v with op %v", session, requestType, err, c.Op)
			}
		}
		if got != want {
			t.Errorf("%s with %q and requestType %q: %s; want %s", path, session, requestType, got, want)
		}
	}
	const bad = "ValidationError"
	for _, path := range []string{plainPath, namedPath, streamPath} {
		f(path, "", "", bad) // blank is not none
		f(path, "", "CLOSE", bad)
		f(path, "", "NEW_SESSION", bad)
	}
	for _, path := range []string{plainPath, namedPath} {
		f(path, none, "", "none ")
		f(path, "NEW_SESSION", "", "open ")
		f(path, none, "NEW_SESSION", "open ")
		f(path, "NEW_SESSION", "NEW_SESSION", "open ")
		f(path, "abc", "NEW_SESSION", bad)
		f(path, "abc", "CLOSE", "close abc")
		f(path, none, "CLOSE", bad)
		f(path, "NEW_SESSION", "CLOSE_SESSION", bad)
	}
	f(streamPath, "NEW_SESSION", "", bad)
	f(streamPath, none, "NEW_SESSION", bad)
	for _, path := range []string{plainPath, namedPath, streamPath} {
		f(path, "abc", "", "use abc")
		f(path, "abc", "SESSION", "use abc") // the application's
		f(path, "abc", "new_session", "use abc")
		f(path, none, "SESSION", "none ")
		f(path, "abc", "CLOSE_SESSION", "close abc")
		f(path, none, "CLOSE_SESSION", bad)
		f(path, "-abc", "", bad)
		f(path, "a b", "", bad)
		f(path, "new_session", "", bad)
		f(path, "a_b", "CLOSE", bad)
		f(path, strings.Repeat("x", 256), "", "use "+strings.Repeat("x", 256))
		f(path, strings.Repeat("x", 257), "", bad)
	}
}

func TestFieldsInThreeSpellings(t *testing.T) {
	for _, h := range []head{
		{"X-Amzn-SageMaker-Session-Id": "s", "X-Amzn-SageMaker-Prefix-Aware-Id": "app", "X-Amzn-SageMaker-Accept": "text/x", "amz-sdk-invocation-id": "i", "amz-sdk-request": "attempt=2; max=3"},
		{"X-Amzn-Sagemaker-Session-Id": "s", "X-Amzn-Sagemaker-Prefix-Aware-Id": "app", "X-Amzn-Sagemaker-Accept": "text/x", "Amz-Sdk-Invocation-Id": "i", "Amz-Sdk-Request": "max=3;attempt=2"},
		{"x-amzn-sagemaker-session-id": "s", "x-amzn-sagemaker-prefix-aware-id": "app", "x-amzn-sagemaker-accept": "text/x", "AMZ-SDK-INVOCATION-ID": "i", "AMZ-SDK-REQUEST": "ttl=x; attempt=2"},
	} {
		c, err := Read(streamPath, h.lookup, "CLOSE")
		want := Call{Endpoint: "e", Stream: true, Op: Close, InBody: true, Session: "s", Accept: "text/x", PrefixAwareID: "app", InvocationID: "i"}
		if err != nil || c != want {
			t.Errorf("%v: %+v, %v; want %+v", h, c, err, want)
		}
	}
	if c, err := Read(plainPath, head{"Accept": "a/b", "X-Amzn-SageMaker-Accept": "no"}.lookup, ""); err != nil || c.Accept != "a/b" {
		t.Errorf("plain path: %+v, %v", c, err)
	}
}

func TestBadFields(t *testing.T) {
	f := func(path string, h head, want string) {
		t.Helper()
		_, err := Read(path, h.lookup, "")
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || err.Type != "ValidationError" || !strings.Contains(err.Message, want) {
			t.Errorf("%s %v: %v; want %q", path, h, err, want)
		}
	}
	f("/endpoints/my%20ep/invocations", nil, "endpoint's name")
	f("/endpoints//invocations", nil, "endpoint's name")
	f("/endpoints/-a/invocations", nil, "endpoint's name")
	f("/endpoints/a-/invocations", nil, "endpoint's name")
	f("/endpoints/"+strings.Repeat("a", 63)+"/invocations", nil, "")
	f("/endpoints/"+strings.Repeat("a", 64)+"/invocations", nil, "endpoint's name")
	f(namedPath, head{HeaderPrefixAware: "an application"}, "")
	f(namedPath, head{HeaderPrefixAware: " a"}, "Prefix-Aware")
	f(namedPath, head{HeaderPrefixAware: "ü"}, "Prefix-Aware")
	f(namedPath, head{HeaderPrefixAware: strings.Repeat("a", 64)}, "")
	f(namedPath, head{HeaderPrefixAware: strings.Repeat("a", 65)}, "Prefix-Aware")
	f(namedPath, head{HeaderInvocation: strings.Repeat("a", 129)}, "") // no SDK's: as if it were not there
	if c, _ := Read(namedPath, head{HeaderInvocation: strings.Repeat("a", 129)}.lookup, ""); c.InvocationID != "" {
		t.Errorf("a long invocation id was taken: %+v", c)
	}
}

func TestStrip(t *testing.T) {
	named, plain, stream := &Call{Endpoint: "e"}, &Call{}, &Call{Endpoint: "e", Stream: true}
	f := func(c *Call, name, value string, want bool) {
		t.Helper()
		if got := c.Strip(name, value); got != want {
			t.Errorf("%+v %s: stripped %v; want %v", c, name, got, want)
		}
	}
	const sigV4 = "AWS4-HMAC-SHA256 Credential=x/20261121/us-east-1/sagemaker/aws4_request"
	f(named, "Authorization", sigV4, true)
	f(named, "authorization", "Bearer k", true)
	f(plain, "Authorization", sigV4, true)
	f(plain, "Authorization", "AWS4-ECDSA-P256-SHA256 x", true)
	f(plain, "Authorization", "Bearer k", false)
	for _, name := range []string{"X-Amz-Date", "x-amz-security-token", "X-Amz-Content-Sha256", "X-Amz-User-Agent", "amz-sdk-invocation-id",
		"Amz-Sdk-Request", "X-Amzn-SageMaker-Session-Id", "x-amzn-sagemaker-prefix-aware-id", "X-Amzn-Sagemaker-New-Session-Id",
		"X-Amzn-SageMaker-Accept"} {
		f(named, name, "v", true)
		f(plain, name, "v", true)
	}
	for _, name := range []string{"Content-Type", "X-Amzn-SageMaker-Custom-Attributes", "X-Amzn-SageMaker-Target-Model",
		"x-amzn-sagemaker-target-variant", "X-Amzn-SageMaker-Inference-Id", "X-Amzn-SageMaker-Inference-Component",
		"X-Amzn-SageMaker-Adapter-Identifier", "X-Amzn-Trace-Id", "User-Agent", "traceparent", "X-Amz", "X-Amzn-SageMaker-"} {
		f(named, name, "v", false)
		f(stream, name, "v", false)
	}
	f(named, "Accept", "a/b", false)
	f(stream, "Accept", "*/*", true)
}

func TestStripAnswer(t *testing.T) {
	f := func(stream bool, name string, want bool) {
		t.Helper()
		if got := (&Call{Stream: stream}).StripAnswer(name); got != want {
			t.Errorf("%s on a stream %v: %v; want %v", name, stream, got, want)
		}
	}
	f(false, "x-amzn-sagemaker-new-session-id", true)
	f(false, "X-Amzn-SageMaker-Session-Id", true)
	f(false, "X-Amzn-SageMaker-Closed-Session-Id", true)
	f(false, "X-Amzn-SageMaker-Custom-Attributes", false)
	f(false, "Content-Type", false)
	f(true, "content-type", true)
	f(true, "X-Amzn-SageMaker-Content-Type", true)
	f(true, "X-Amzn-SageMaker-Custom-Attributes", false)
}
