package exchange

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// aliased makes a scene of one worker in which "pet" stands for the model "cat".
func aliased(t *testing.T, answer string) *scene {
	s := newScene(t, []string{answer})
	s.epoch.Names = names.New([]names.Alias{{Name: "pet", Targets: []names.Target{{Model: "cat", Weight: 1}}}})
	return s
}

// TestAliasInAnswers: the client gets the name that it sent, and the header and the record name the target.
func TestAliasInAnswers(t *testing.T) {
	for _, c := range []struct{ what, from, want string }{
		{"whole", whole(200, `{"model":"cat","x":"cat"}`), `{"model":"pet","x":"cat"}`},
		{"error", whole(404, "{\"error\":{\"message\":\"The model `cat` does not exist.\"}}"),
			"{\"error\":{\"message\":\"The model `pet` does not exist.\"}}"},
		{"error that quotes the body", whole(400, `{"detail":[{"input":{"model":"cat","x":1},"msg":"cat, not cats"}]}`),
			`{"detail":[{"input":{"model":"pet","x":1},"msg":"pet, not cats"}]}`},
		{"several lines of data", streamed("data: {\"id\":1,\ndata: \"model\":\r\ndata: \"cat\"}\n\n", done),
			"data: {\"id\":1,\ndata: \"model\":\r\ndata: \"pet\"}\n\n" + done},
		{"cut in the name", streamed("data: {\"model\":\"c", pause, "at\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
			"data: [DONE]\n\n"),
			"data: {\"model\":\"pet\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"},
	} {
		s := aliased(t, c.from)
		in := inbound("POST", "/v1/chat/completions", `{"model":"pet","messages":[{"role":"user","content":"hi"}]}`)
		a := s.ask(in)
		if a.body != c.want || a.broken || in.Seen.Model != "cat" {
			t.Errorf("%s: %s, of %q", c.what, a.body, in.Seen.Model)
		}
	}
}

// TestAliasInBodies: only the bytes of the name change on the way to the worker.
func TestAliasInBodies(t *testing.T) {
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n%s\r\n--b--\r\n"
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", ` {"x": {"model":"pet"}, "model" : "pet" , "messages":[]}`,
			` {"x": {"model":"pet"}, "model" : "cat" , "messages":[]}`},
		{"multipart/form-data; boundary=b", fmt.Sprintf(form, "pet"), fmt.Sprintf(form, "cat")},
		{"application/json", `{"model":"dog"}`, `{"model":"dog"}`},
		{"application/json", `{"mod\u0065l":"p\u0065t"}`, `{"mod\u0065l":"cat"}`},
		{"application/json", `{"model":"x","mod\u0065L":"dog","\u006Dodel":"pet"}`,
			`{"model":"cat","mod\u0065L":"dog"}`},
	} {
		s := aliased(t, whole(200, "{}"))
		in := inbound("POST", "/v1/chat/completions", c.body, "Content-Type", c.kind)
		in.Epoch = s.epoch
		r := admission.Request{In: in, Epoch: s.epoch, Pool: s.epoch.Pools[0]}
		r.Read.Parse(in, "")
		if f := admission.Rename(&r); f != nil {
			t.Fatal(f)
		}
		send := sending{}
		send.Body = in.Body
		send.edit(&r)
		if string(send.Body) != c.want {
			t.Errorf("%s became %s", c.body, send.Body)
		}
	}
}

// TestAliasRights: a key may use an alias by its name, or by that of its targets.
func TestAliasRights(t *testing.T) {
	for model, status := range map[string]int{"pet": 200, "cat": 200, "dog": 403} {
		s := aliased(t, whole(200, "{}"))
		s.epoch.Keys = gate.NewKeys([]gate.Key{{Name: "k", Secret: "s", Models: []string{model}}})
		in := inbound("POST", "/v1/chat/completions", `{"model":"pet","messages":[]}`, "Content-Type", "application/json")
		in.Caller = s.epoch.Keys.Named("k")
		if a := s.ask(in); a.status != status {
			t.Errorf("a key for %s: %d %s", model, a.status, a.body)
		}
	}
}

// TestNoAliasCostsNothing: where no name is configured nothing is allocated.
func TestNoAliasCostsNothing(t *testing.T) {
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
	in.Epoch = &epoch.Epoch{}
	r := admission.Request{In: in, Epoch: in.Epoch}
	r.Read.Parse(in, "")
	n := testing.AllocsPerRun(100, func() {
		if admission.Rename(&r) != nil || r.ClientModel() != "m" {
			t.Error("renamed")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
