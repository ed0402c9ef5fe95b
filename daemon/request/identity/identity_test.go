package identity

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// fields are a header, or a body.
type fields map[string]string

func (f fields) header() (h upstream.Header) {
	for n, v := range f {
		h = append(h, upstream.Field{Name: n, Value: v})
	}
	return h
}

func (f fields) Name(field string) string { return f[field] }

// all is the default list of package conf.
var all = []string{"X-Warmpath-Session-Id", "X-Dynamo-Session-ID", "X-Claude-Code-Session-Id", "Thread-Id", "Session-Id",
	"X-Session-Affinity", "X-Session-Id", "body.prompt_cache_key", "body.session_id", "body.user",
	"body.vllm_xargs.agentic_context.program_id"}

// TestRecordedAgents is the table of the header fields that agents have sent, and of what they name.
func TestRecordedAgents(t *testing.T) {
	const (
		codex  = "019a7c3e-5b1d-7d20-9d4e-6f0f4f2f8a11"
		thread = "019a7c3e-9911-7abc-8f00-0242ac120002"
		claude = "6f1c0a52-7d0e-4f0e-a9a5-0b9b6c1f2d3e"
		open   = "ses_5d1f0b3c9ffeK2pQ7bXwVt8a"
	)
	for what, c := range map[string]struct {
		header fields
		want   Identity
	}{
		"Codex": {fields{"session-id": codex, "thread-id": codex, "x-client-request-id": codex, "x-codex-window-id": codex + ":0",
			"originator": "codex_exec", "user-agent": "codex_exec/0.171.0"}, Identity{Session: codex, By: "Thread-Id"}},
		"Codex' subagent": {fields{"session-id": codex, "thread-id": thread, "x-codex-parent-thread-id": codex},
			Identity{Session: thread, Parent: codex, By: "Thread-Id"}},
		"Codex before threads": {fields{"session-id": codex}, Identity{Session: codex, By: "Session-Id"}},
		"Claude Code": {fields{"X-Claude-Code-Session-Id": claude, "X-App": "cli", "X-Stainless-Retry-Count": "0"},
			Identity{Session: claude, By: "X-Claude-Code-Session-Id"}},
		"Claude Code's subagent": {fields{"X-Claude-Code-Session-Id": claude, "X-Claude-Code-Agent-Id": "a1"},
			Identity{Session: claude + "/a1", Parent: claude, By: "X-Claude-Code-Session-Id"}},
		"its subagent": {fields{"X-Claude-Code-Session-Id": claude, "X-Claude-Code-Agent-Id": "b2", "X-Claude-Code-Parent-Agent-Id": "a1"},
			Identity{Session: claude + "/b2", Parent: claude + "/a1", By: "X-Claude-Code-Session-Id"}},
		"a parent without a child": {fields{"X-Claude-Code-Session-Id": claude, "X-Claude-Code-Parent-Agent-Id": "a1"},
			Identity{Session: claude, By: "X-Claude-Code-Session-Id"}},
		"OpenCode": {fields{"x-session-id": open, "x-session-affinity": open}, Identity{Session: open, By: "X-Session-Affinity"}},
		"OpenCode's subtask": {fields{"x-session-id": open + "2", "x-session-affinity": open + "2", "x-parent-session-id": open},
			Identity{Session: open + "2", Parent: open, By: "X-Session-Affinity"}},
		"a client of TensorRT-LLM": {fields{"x-session-id": "c2", "x-parent-session-id": "c1"},
			Identity{Session: "c2", Parent: "c1", By: "X-Session-Id"}},
		"Dynamo's": {fields{"X-Dynamo-Session-ID": "run-42:researcher", "X-Dynamo-Parent-Session-ID": "run-42", "X-Session-Id": "x"},
			Identity{Session: "run-42:researcher", Parent: "run-42", By: "X-Dynamo-Session-ID"}},
		"its last request": {fields{"X-Dynamo-Session-ID": "run-42", "X-Dynamo-Session-Final": "true"},
			Identity{Session: "run-42", By: "X-Dynamo-Session-ID", Final: true}},
		"no parent of another schema": {fields{"X-Claude-Code-Session-Id": claude, "X-Dynamo-Parent-Session-ID": "run-42",
			"X-Parent-Session-Id": open}, Identity{Session: claude, By: "X-Claude-Code-Session-Id"}},
		"Qwen Code": {fields{"user-agent": "QwenCode/0.15.10", "X-Stainless-Lang": "js"}, Identity{}},
		"aider":     {fields{"user-agent": "litellm"}, Identity{}},
		"no name":   {fields{"x-session-id": " "}, Identity{}},
		"a name that is too long": {fields{"X-Session-Affinity": strings.Repeat("x", MaxName+1), "X-Session-Id": strings.Repeat("x", MaxName)},
			Identity{Session: strings.Repeat("x", MaxName), By: "X-Session-Id"}},
	} {
		if got := New(all).InHeader(c.header.header()); got != c.want {
			t.Errorf("%s: %+v; want %+v", what, got, c.want)
		}
	}
}

func TestInBody(t *testing.T) {
	f := func(list []string, body fields, want Identity) {
		t.Helper()
		if got := New(list).InBody(body); got != want {
			t.Errorf("%v: %+v; want %+v", body, got, want)
		}
	}
	f(all, fields{"user": "u", "session_id": "s", "prompt_cache_key": "k"}, Identity{Session: "k", By: "body.prompt_cache_key"})
	f([]string{"body.user", "body.session_id"}, fields{"user": "u", "session_id": "s"}, Identity{Session: "u", By: "body.user"})
	f([]string{"X-Session-Id"}, fields{"session_id": "s", "X-Session-Id": "x"}, Identity{})
	f(all, fields{"vllm_xargs.agentic_context.program_id": "p2", "vllm_xargs.agentic_context.parent_program_id": "p1"},
		Identity{Session: "p2", Parent: "p1", By: "body.vllm_xargs.agentic_context.program_id"})
	f(all, fields{"user": strings.Repeat("u", MaxName+1)}, Identity{})
	var none *List
	if got := none.InBody(fields{"user": "u"}); got != (Identity{}) || none.InHeader(fields{"X-Session-Id": "x"}.header()) != got {
		t.Errorf("no list: %+v", got)
	}
}

func TestNoNameCostsNoAllocation(t *testing.T) {
	l, h := New(all), fields{"user-agent": "x", "content-type": "json", "x-stainless-lang": "js"}.header()
	if n := testing.AllocsPerRun(100, func() { l.InHeader(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
