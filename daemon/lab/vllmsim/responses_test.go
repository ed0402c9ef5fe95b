package vllmsim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

func TestResponsesAreKnownToTheirWorkerAlone(t *testing.T) {
	s, other := newTiny(t, Config{Speed: 1000}), newTiny(t, Config{Speed: 1000})
	a := want(t, do(s, "POST", "/v1/responses", `{"input":"hello there","instructions":"be brief"}`), 200)
	id := a["id"].(string)
	if a["status"] != "completed" || !strings.HasPrefix(id, "resp_") {
		t.Errorf("got %v", a)
	}
	if got := want(t, do(s, "GET", "/v1/responses/"+id, ""), 200); got["id"] != id {
		t.Errorf("got %v", got)
	}
	next := fmt.Sprintf(`{"input":[{"role":"user","content":[{"type":"input_text","text":"more"}]}],`+
		`"previous_response_id":%q}`, id)
	b := want(t, do(s, "POST", "/v1/responses", next), 200)
	if b["usage"].(map[string]any)["input_tokens"].(float64) <= a["usage"].(map[string]any)["output_tokens"].(float64) {
		t.Errorf("usage %v: the next turn does not hold the first reply", b["usage"])
	}
	for method, path := range map[string]string{"GET": "", "POST": "/cancel"} {
		want(t, do(other, method, "/v1/responses/"+id+path, ""), 404)
	}
	want(t, do(other, "POST", "/v1/responses", next), 404)
	want(t, do(s, "POST", "/v1/responses/"+id+"/cancel", ""), 400)
	if w := do(s, "DELETE", "/v1/responses/"+id, ""); w.Code != 405 {
		t.Errorf("DELETE: %d, want 405 as vLLM", w.Code)
	}
	if w := do(s, "GET", "/v1/responses/"+id+"/input_items", ""); w.Code != 404 {
		t.Errorf("input_items: %d, want 404 as vLLM", w.Code)
	}
	unstored := want(t, do(s, "POST", "/v1/responses", `{"input":"x","store":false}`), 200)
	want(t, do(s, "GET", "/v1/responses/"+unstored["id"].(string), ""), 404)
}

func TestBackgroundResponse(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	status := func(id string) any { return want(t, do(s, "GET", "/v1/responses/"+id, ""), 200)["status"] }
	a := want(t, do(s, "POST", "/v1/responses", `{"input":"x","background":true,"max_output_tokens":50}`), 200)
	if a["status"] != "queued" {
		t.Errorf("status %v, want queued", a["status"])
	}
	waittest.Until(t, "the response", func() bool { return status(a["id"].(string)) != "queued" })
	if got := status(a["id"].(string)); got != "incomplete" {
		t.Errorf("status %v, want incomplete: 50 tokens were asked for", got)
	}
	if err := s.SetFault(Fault{Mode: FaultStall}); err != nil {
		t.Fatal(err)
	}
	id := want(t, do(s, "POST", "/v1/responses", `{"input":"x","background":true}`), 200)["id"].(string)
	want(t, do(s, "POST", "/v1/responses/"+id+"/cancel", ""), 200)
	waittest.Until(t, "the slot to be free", func() bool {
		st := s.Stats()
		return st.Running+st.Waiting == 0 && s.process.Load().infer.load.Load() == 0
	})
	if got := status(id); got != "cancelled" {
		t.Errorf("status %v, want cancelled", got)
	}
}

func TestStoreForgetsTheOldest(t *testing.T) {
	s := newResponseStore()
	for i := range maxStored + 1 {
		s.put(&responseForm{job: job{id: fmt.Sprint(i)}})
	}
	if s.get("0") != nil || s.get("1") == nil || len(s.byID) != maxStored {
		t.Errorf("%d stored, the first %v", len(s.byID), s.get("0"))
	}
}

const weather = `{"type":"function","function":{"name":"weather","parameters":{"type":"object",` +
	`"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}`

func TestToolCalls(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	f := func(rest string, calls bool) {
		t.Helper()
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"tools":[%s],"stream":%v,%s}`, weather, stream, rest)
			w := do(s, "POST", "/v1/chat/completions", body)
			name, arguments, end := toolCall(t, w.Body.Bytes(), stream)
			if calls && (name != "weather" || arguments != `{"city":"kalo","days":7}` || end != "tool_calls") || !calls &&
				name != "" {
				t.Errorf("%s: got %q(%s) and %q", body, name, arguments, end)
			}
		}
	}
	f(`"messages":[{"role":"user","content":"please use the tool now"}]`, true)
	f(`"messages":[{"role":"user","content":"hi"}]`, false)
	f(`"messages":[{"role":"user","content":"hi"}],"tool_choice":"required"`, true)
	f(`"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"function","function":{"name":"weather"}}`, true)
	f(`"messages":[{"role":"user","content":"use the tool"}],"tool_choice":"none"`, false)
	f(`"messages":[{"role":"user","content":"use the tool"},{"role":"tool","tool_call_id":"x","content":"sunny"}]`, false)
}

// TestScriptedCalls: the script says what a conversation's next turn calls, by the results of tools that it has, in each
// API. A conversation at the script's end, or one that does not offer the tool, gets text that ends on its own.
func TestScriptedCalls(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, Script: []Turn{
		{"other": []byte(`{}`), "weather": []byte(`{"city":"one"}`)}, {"weather": []byte(`{"city":"two"}`)}, {"none": []byte(`{}`)}}})
	f := func(path, body, want string) {
		t.Helper()
		w := do(s, "POST", path, body)
		if w.Code != 200 || (want == "") == strings.Contains(w.Body.String(), "city") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s; want a call with %q", path, body, w.Code, w.Body, want)
		}
	}
	flat := `{"type":"function","name":"weather","parameters":{"type":"object"}}`
	const user, result = `{"role":"user","content":"hi"}`, `,{"role":"tool","tool_call_id":"x","content":"sunny"}`
	chat := func(tools, results string) string {
		return `{"max_tokens":500,"tools":[` + tools + `],"messages":[` + user + results + `]}`
	}
	f("/v1/chat/completions", chat(weather, ""), "one")
	f("/v1/chat/completions", chat(weather, result), "two")
	f("/v1/chat/completions", chat(weather, result+result), "")
	f("/v1/chat/completions", chat(weather, result+result+result), "")
	f("/v1/chat/completions", chat(strings.Replace(weather, "weather", "third", 1), ""), "")
	f("/v1/responses", `{"tools":[`+flat+`],"input":[`+user+`]}`, "one")
	f("/v1/responses", `{"tools":[`+flat+`],"input":[`+user+`,{"type":"function_call","call_id":"x","name":"weather","arguments":"{}"},`+
		`{"type":"function_call_output","call_id":"x","output":"sunny"}]}`, "two")
	f("/v1/messages", `{"max_tokens":500,"tools":[{"name":"weather","input_schema":{"type":"object"}}],"messages":[`+user+`,`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"weather","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"sunny"}]}]}`, "two")
	var a struct {
		Usage struct {
			Output int `json:"completion_tokens"`
		}
	}
	w := do(s, "POST", "/v1/chat/completions", chat(weather, result+result))
	if json.Unmarshal(w.Body.Bytes(), &a) != nil || a.Usage.Output >= 500 {
		t.Errorf("the text does not end on its own: %s", w.Body)
	}
}

// toolCall reads the call out of a chat answer or stream.
func toolCall(t *testing.T, body []byte, stream bool) (name, arguments, end string) {
	t.Helper()
	type calls struct {
		Calls []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	docs := []string{string(body)}
	if stream {
		docs = eventsOf(t, body)
		docs = docs[:len(docs)-1]
	}
	for _, d := range docs {
		var v struct {
			Choices []struct {
				Message, Delta calls
				Finish         string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			t.Fatalf("%v: %s", err, d)
		}
		for _, c := range v.Choices {
			for _, call := range slices.Concat(c.Message.Calls, c.Delta.Calls) {
				name += call.Function.Name
				arguments += call.Function.Arguments
			}
			end = c.Finish
		}
	}
	return name, arguments, end
}

func TestResponsesToolAndSchema(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	flat := `{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}`
	a := want(t, do(s, "POST", "/v1/responses", `{"input":"use the tool","tools":[`+flat+`]}`), 200)
	call := a["output"].([]any)[0].(map[string]any)
	if call["type"] != "function_call" || call["arguments"] != `{"city":"kalo"}` {
		t.Errorf("got %v", call)
	}
	w := do(s, "POST", "/v1/responses", `{"input":"use the tool","stream":true,"tools":[`+flat+`]}`)
	if names := eventNames(w.Body.Bytes()); !slices.Contains(names, "response.function_call_arguments.done\n") {
		t.Errorf("events %q", names)
	}
	a = want(t, do(s, "POST", "/v1/responses",
		`{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object",`+
			`"properties":{"a":{"type":"boolean"}}}}}}`), 200)
	text := a["output"].([]any)[0].(map[string]any)["content"].([]any)[0].(map[string]any)["text"]
	if text != `{"a":true}` {
		t.Errorf("text %v", text)
	}
}

func TestSampleOfSchema(t *testing.T) {
	f := func(schema, want string) {
		t.Helper()
		if got := sampleOf(json.RawMessage(schema)); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
	f(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number","minimum":3},"l":{"type":"array",`+
		`"items":{"type":"string"}}}}`,
		`{"z":"kalo","a":3,"l":[]}`)
	f(`{"type":"object","properties":{"k":{"enum":["x","y"]},"c":{"const":1},"n":{"type":["null","string"]}}}`,
		`{"k":"x","c":1,"n":null}`)
	f(`{"$defs":{"P":{"type":"object","properties":{"q":{"type":"boolean"}}}},"type":"object",
		"properties":{"p":{"$ref":"#/$defs/P"},
		"l":{"type":"array","minItems":2,"items":{"type":"integer"}}}}`, `{"p":{"q":true},"l":[7,7]}`)
	f(`{"type":"object","properties":{"größe":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"gr\u00f6\u00dfe":7}`)
	f(`nonsense`, `{}`)
	f(``, `{}`)
	endless := sampleOf(json.RawMessage(`{"$defs":{"L":{"type":"object","properties":{"next":{"$ref":"#/$defs/L"}}}},` +
		`"$ref":"#/$defs/L"}`))
	if !strings.HasPrefix(endless, `{"next":{"next":`) || len(endless) > 200 || !json.Valid([]byte(endless)) {
		t.Errorf("a schema without end gave %s", endless)
	}
}

func FuzzSampleOfSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"array","minItems":3,"items":{"$ref":"#/$defs/x"}}},` +
		`"$defs":{"x":{"enum":["é"]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := sampleOf(raw)
		if !json.Valid([]byte(got)) || strings.ContainsFunc(got, func(r rune) bool { return r >= 0x80 }) {
			t.Errorf("%q gave %q", raw, got)
		}
	})
}
