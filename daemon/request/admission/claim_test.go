package admission

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// claiming returns a request whose body has been read, under the naming.
func claiming(t *testing.T, naming epoch.Naming, in *message.Inbound) *Request {
	t.Helper()
	r := &Request{In: in, Epoch: &epoch.Epoch{Sessions: naming}}
	r.Read.Parse(in, "")
	t.Cleanup(r.Read.release)
	return r
}

// TestClaim is the table of what names a session, the most reliable source first.
func TestClaim(t *testing.T) {
	all := epoch.Naming{Identity: identity.New([]string{"X-Session-Id", "body.user", "body.session_id"}), Cookie: "wp", Always: true}
	soft := all
	soft.Always = false
	f := func(naming epoch.Naming, in *message.Inbound, key string, binds, fresh bool) {
		t.Helper()
		r := claiming(t, naming, in)
		c := r.Claim()
		if fresh && c.Key.ID != "" && c.Key.ID == r.Cookie {
			key = r.Cookie
		}
		want := session.Name{Kind: session.Key, Tenant: "\x00", ID: key}
		if c.Key != want || c.Binds != binds || c.Fresh != fresh || (r.Cookie != "") != fresh {
			t.Errorf("%v %s: %+v, cookie %q; want %q, binds %v, fresh %v", in.Header, in.Body, c, r.Cookie, key, binds, fresh)
		}
	}
	chat := func(body string, header ...string) *message.Inbound {
		return inbound("POST", "/v1/chat/completions", body, header...)
	}
	const named = `{"model":"m","user":"u","session_id":"s","messages":[]}`
	f(all, chat(named, "x-session-id", "h", "Cookie", "wp=c"), "h", true, false)
	f(all, chat(named, "Cookie", "wp=c"), "c", true, false)
	f(all, chat(named, "Cookie", `{"ill-formed"; wp=c`), "c", true, false)
	f(all, chat(named), "u", false, false)
	f(soft, chat(named, "x-session-id", "h", "Cookie", "wp=c"), "h", false, false)
	f(soft, chat(named, "Cookie", "wp=c"), "c", false, false)
	f(soft, chat(`{"messages":[]}`), "", false, true)
	f(epoch.Naming{Identity: identity.New([]string{"body.session_id", "body.user"})}, chat(named), "s", false, false)
	f(epoch.Naming{Identity: identity.New([]string{"body.session_id"})}, chat(`{"user":"u"}`), "", false, false)
	f(epoch.Naming{}, chat(named, "x-session-id", "h", "Cookie", "wp=c"), "", false, false)
	f(all, chat(`{"messages":[]}`), "", true, true) // a cookie is made up
	f(all, inbound("POST", "/v1/embeddings", `{"input":"x"}`), "", false, false)
	f(all, chat(named, "x-session-id", strings.Repeat("x", identity.MaxName)), strings.Repeat("x", identity.MaxName), true, false)
	f(all, chat(named, "x-session-id", strings.Repeat("x", identity.MaxName+1)), "u", false, false)
	f(all, chat(named, "Cookie", "wp="+strings.Repeat("x", identity.MaxName+1)), "u", false, false)
}

// TestClaimOfTenants: the same session name under two keys, or two salts, is two sessions.
func TestClaimOfTenants(t *testing.T) {
	in := inbound("POST", "/v1/chat/completions", `{"cache_salt":"a","messages":[]}`, "x-session-id", "h")
	in.Caller = callerOf(t, "*")
	c := claiming(t, epoch.Naming{Identity: identity.New([]string{"X-Session-Id"})}, in).Claim()
	if c.Key.Tenant != "bob\x00a" {
		t.Errorf("tenant %q", c.Key.Tenant)
	}
}

// TestClaimOfOpened: a protocol's opened session comes before every other source.
func TestClaimOfOpened(t *testing.T) {
	naming := epoch.Naming{Identity: identity.New([]string{"X-Session-Id"}), Cookie: "wp", Always: true}
	in := inbound("POST", "/invocations", `{"messages":[]}`, "x-session-id", "h")
	r := claiming(t, naming, in)
	r.Entry = message.Entry{Op: message.Opening}
	if c := r.Claim(); !c.Placing || c.Key.ID == "" || c.Key.ID == "h" || c.Binds || r.Cookie != "" {
		t.Errorf("an opening: %+v", c)
	}
	r.Entry = message.Entry{Session: "s", Op: message.Closing}
	if c := r.Claim(); c != (route.Claim{Opened: in.Opened("s"), Closing: true}) {
		t.Errorf("a closing: %+v", c)
	}
	minted := session.MintID()
	in = inbound("POST", "/v1/chat/completions", `{"messages":[]}`, "x-session-id", minted)
	if c := claiming(t, naming, in).Claim(); c.Maybe != in.Opened(minted) || c.Key.ID != minted {
		t.Errorf("an id as we give them out: %+v", c)
	}
}

// TestClaimOfStoredResponses: a request may refer to two, in its body and its path.
func TestClaimOfStoredResponses(t *testing.T) {
	in := inbound("POST", "/v1/responses/resp_2/more", `{"previous_response_id":"resp_1"}`)
	r := claiming(t, epoch.Naming{}, in)
	if got := r.Responses(); got[1] != "resp_2" {
		t.Errorf("responses: %q", got)
	}
	in = inbound("POST", "/v1/responses", `{"previous_response_id":"resp_1"}`)
	r = claiming(t, epoch.Naming{}, in)
	if c := r.Claim(); c.Stored != [2]session.Name{in.Stored("resp_1")} {
		t.Errorf("claim: %+v", c)
	}
	in = inbound("GET", "/sessions/resp_3", ``)
	if got := claiming(t, epoch.Naming{}, in).Responses(); got != [2]string{} {
		t.Errorf("a session's id is taken for a response's: %q", got)
	}
}
