package vllmsim

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// TestRenderMatchesRecording: the answers of the render endpoints have the recorded shape.
func TestRenderMatchesRecording(t *testing.T) {
	var cases []struct {
		Request struct {
			Method, Path string
			Body         json.RawMessage
		}
		Status string
		Reply  json.RawMessage
	}
	if err := json.Unmarshal(recorded(t, "render.json"), &cases); err != nil {
		t.Fatal(err)
	}
	s := newTiny(t, Config{ScaleOut: true})
	n := 0
	for _, c := range cases {
		if c.Status != "HTTP/1.1 200 OK" || c.Request.Path == "/v1/responses/render" {
			continue // not served here, and a tool parser that the recorded worker had not
		}
		n++
		w := do(s, "POST", c.Request.Path, string(c.Request.Body))
		if w.Code != 200 {
			t.Errorf("%s: %d %s", c.Request.Path, w.Code, w.Body)
			continue
		}
		sameShape(t, c.Request.Path, w.Body.Bytes(), c.Reply)
	}
	if n < 5 {
		t.Errorf("%d cases", n)
	}
	if w := do(newTiny(t, Config{}), "POST", "/v1/completions/render", `{"prompt":"x"}`); w.Code != 403 {
		t.Errorf("without scale-out: %d %s", w.Code, w.Body)
	}
}

// TestTurnsContinue: a chat's ids are the same by render, by tokenize and by return_token_ids, and the next turn begins
// with the ids of the turn before and those of its reply.
func TestTurnsContinue(t *testing.T) {
	s := newTiny(t, Config{ScaleOut: true, Speed: 1000})
	type said struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	chat := []said{{"system", "Be brief."}, {"user", "Why?"}}
	var before []uint32
	for range 4 {
		body, _ := json.Marshal(map[string]any{"messages": chat, "return_token_ids": true})
		var answer struct {
			Prompt  []uint32 `json:"prompt_token_ids"`
			Choices []struct {
				Message said     `json:"message"`
				IDs     []uint32 `json:"token_ids"`
				Finish  string   `json:"finish_reason"`
			} `json:"choices"`
		}
		var ids struct {
			Rendered  []uint32 `json:"token_ids"`
			Tokenized []uint32 `json:"tokens"`
		}
		for path, into := range map[string]any{"/v1/chat/completions": &answer, "/v1/chat/completions/render": &ids,
			"/tokenize": &ids} {
			if err := json.Unmarshal(do(s, "POST", path, string(body)).Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(answer.Prompt, ids.Rendered) || !slices.Equal(answer.Prompt, ids.Tokenized) {
			t.Fatalf("ids by answer, render and tokenize: %d, %d, %d", answer.Prompt, ids.Rendered, ids.Tokenized)
		}
		if len(answer.Prompt) < len(before) || !slices.Equal(answer.Prompt[:len(before)], before) {
			t.Fatalf("a turn of %d ids does not continue %d", answer.Prompt, before)
		}
		reply := answer.Choices[0]
		before = slices.Concat(answer.Prompt, reply.IDs)
		if reply.Finish != "stop" || before[len(before)-1] != engine.TokenEnd {
			t.Errorf("a reply ends with %s, id %d", reply.Finish, before[len(before)-1])
		}
		chat = append(chat, said{"assistant", reply.Message.Content}, said{"user", "And then?"})
	}
}
