package route

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// lengths has each worker list the model m of a length.
func (s *scene) lengths(of map[string]int) {
	for name, n := range of {
		s.Workers.Listed(s.watched[name], []string{"m"}, []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"id":"m","max_model_len":%d}`, n))})
	}
}

// asked reads a body as a request of that kind.
func (s *scene) asked(kind prompt.Kind, body string) *Ask {
	s.t.Helper()
	r, err := new(prompt.Parser).Parse(kind, []byte(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return &Ask{Prompt: r, At: s.now}
}

// TestNeed is the table of how many tokens a request surely has.
func TestNeed(t *testing.T) {
	s := newScene(t, "a b")
	f := func(kind prompt.Kind, body string, least, most int) {
		t.Helper()
		var c Choice
		a := s.asked(kind, body)
		answer := a.Prompt.MaxTokens
		a.Prompt.MaxTokens = decline // to the strategy it means something else
		s.Choose(&c, a)
		a.Prompt.MaxTokens = answer
		if got := c.need(); got < least || got > most {
			t.Errorf("%v %.60s: %d; want %d to %d", kind, body, got, least, most)
		}
		c.Release()
	}
	text := strings.Repeat("some words ", 3200) // 35,200 bytes: some 8,800 tokens by the pool's first guess
	f(prompt.Completion, `{"model":"m","prompt":"`+text+`"}`, 6000, 6400)
	f(prompt.Chat, `{"model":"m","messages":[{"role":"user","content":"`+text+`"}],"max_completion_tokens":500}`, 6500, 6900)
	f(prompt.Completion, `{"model":"m","prompt":["x","`+text+`","y"]}`, 6000, 6400) // the longest
	f(prompt.Completion, `{"model":"m","prompt":[1,2,3,4],"max_tokens":96}`, 100, 100)
	f(prompt.Rerank, `{"model":"m","query":"x","documents":["`+text+`"]}`, 0, 0) // each document is a prompt of its own
	f(prompt.Tokenize, `{"model":"m","prompt":"`+text+`"}`, 0, 0)
	f(prompt.Other, `{"model":"m","prompt":"`+text+`"}`, 0, 0)
	picture := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 1<<20) + `"}}`
	f(prompt.Chat, `{"model":"m","messages":[{"role":"user","content":[`+picture+`]}]}`, 0, 100) // no text
	a := s.asked(prompt.Chat, `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
	a.IDs = make([]uint32, 1234)
	var c Choice
	s.Choose(&c, a)
	if got := c.need(); got != 1234 {
		t.Errorf("with the engine's own ids: %d; want 1234", got)
	}
	c.Release()
}

// TestLongGoesToLong: a request goes to a worker that can take it, whatever its session; one that is tied stays.
func TestLongGoesToLong(t *testing.T) {
	s := newScene(t, "short long")
	s.lengths(map[string]int{"short": 4096, "long": 32768})
	long := `{"model":"m","prompt":"` + strings.Repeat("some words ", 3200) + `"}`
	f := func(claim Claim, want string) {
		t.Helper()
		a := s.asked(prompt.Completion, long)
		a.Claim = claim
		var c Choice
		if v := s.Choose(&c, a); v != Chosen || c.First().ID() != want {
			t.Errorf("%+v: %v, %s; want %s", claim, v, c.First().ID(), want)
		}
		c.Release()
	}
	key := session.Name{Kind: session.Key, ID: "k"}
	s.Sessions.Bind(key, "short", s.now)
	s.Sessions.Bind(stored("r"), "short", s.now)
	f(Claim{}, "long")
	f(Claim{Key: key}, "long")
	f(Claim{Stored: [2]session.Name{stored("r")}}, "short") // nobody else has the response
}

// TestKeepLonger: after a refusal only longer workers remain, if there are any.
func TestKeepLonger(t *testing.T) {
	f := func(lengths map[string]int, tokens int, want string) {
		t.Helper()
		s := newScene(t, "a b c")
		s.lengths(lengths)
		var c Choice
		s.Choose(&c, s.asked(prompt.Completion, `{"model":"m","prompt":"x"}`))
		if to, _ := c.Next(s.now); to.Worker.ID() != "a" {
			t.Fatalf("first %s", to.Worker.ID())
		}
		got := ""
		if c.KeepLonger(tokens, s.now) {
			for to, ok := c.Next(s.now); ok; to, ok = c.Next(s.now) {
				got += to.Worker.ID()
			}
		}
		if got != want {
			t.Errorf("%v, refused at %d: %q; want %q", lengths, tokens, got, want)
		}
	}
	f(map[string]int{"a": 4096, "b": 4096, "c": 8192}, 4096, "c")
	f(map[string]int{"a": 4096, "b": 4096, "c": 4096}, 4096, "")
	f(map[string]int{"a": 4096, "b": 32768, "c": 8192}, 4096, "bc")
	f(map[string]int{"a": 4096}, 4096, "bc") // they may be longer
}
