package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// played is a request of the traffic with what came of it.
type played struct {
	turn
	messages       []any // as sent
	sent, answered time.Time
	worker         string
	past           bool // the router did not see it
	prompt, cached int  // tokens, as the engine counts them
	believed       int  // tokens that the router took for cached
	decision       decision
}

// decision is what these checks read of the router's record of a request.
type decision struct {
	Worker   string `json:"worker"`
	Strategy string `json:"strategy"`
	Fallback string `json:"fallback"`
	Believed int    `json:"believed_tokens"`
	InTokens bool   `json:"in_tokens"` // the prompt's ids were known
	Live     bool   `json:"live"`      // Believed is what the worker's events say
}

// player sends a traffic, one request after the other.
type player struct {
	workers [2]*vllm
	routers []*router
	stream  bool
	past    func(*turn) bool // goes to its home past the router; nil = none does
	whole   []int            // the tokens that are whole words
	said    map[int][]any    // by chat
}

// play sends one request. Answers become part of the chat as they come.
func (p *player) play(ctx context.Context, t turn) (*played, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if p.said[t.chat] == nil {
		p.said[t.chat] = said("system", t.system)
	}
	messages := append(p.said[t.chat], said("user", t.text)...)
	body := chatBody(messages, t.tokens, p.stream)
	body["temperature"], body["seed"] = 1, t.seed
	if !t.raw {
		body["allowed_token_ids"] = p.whole
	}
	done := &played{turn: t, messages: slices.Clone(messages), past: p.past != nil && p.past(&t)}
	c := p.routers[t.router%len(p.routers)].client.asking("json")
	if done.past {
		c = p.workers[t.home].client
	}
	done.sent = time.Now()
	a := c.post(ctx, "/v1/chat/completions", body)
	done.answered = time.Now()
	if err := a.fault(); err != nil {
		return nil, fmt.Errorf("chat %d: %w", t.chat, err)
	}
	p.said[t.chat] = append(messages, said("assistant", a.reply())...)
	done.prompt, done.cached = a.number("usage", "prompt_tokens"),
		max(0, a.number("usage", "prompt_tokens_details", "cached_tokens")) // 0.19 leaves a zero out
	if done.prompt < 0 {
		return nil, fmt.Errorf("chat %d: no counts in %s", t.chat, a.body[max(0, len(a.body)-300):])
	}
	if done.past {
		done.worker = p.workers[t.home].id
		return done, nil
	}
	if err := json.Unmarshal([]byte(a.header.Get("X-Warmpath-Decision")), &done.decision); err != nil {
		return nil, fmt.Errorf("chat %d: X-Warmpath-Decision: %w", t.chat, err)
	}
	done.worker, done.believed = done.decision.Worker, done.decision.Believed
	return done, nil
}

// ids returns the prompt's tokens, as a worker's own tokenizer has them.
func (w *vllm) ids(ctx context.Context, messages []any) ([]uint32, error) {
	return w.tokenize(ctx, object{"model": "tiny", "messages": messages})
}

func (w *vllm) tokenize(ctx context.Context, body object) ([]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	a := w.client.post(ctx, "/tokenize", body)
	var reply struct{ Tokens []uint32 }
	if a.err != nil || a.status != http.StatusOK {
		return nil, fmt.Errorf("/tokenize at %s: status %d, %w", w.id, a.status, a.err)
	}
	if err := json.Unmarshal(a.body, &reply); err != nil {
		return nil, fmt.Errorf("/tokenize at %s: %w", w.id, err)
	}
	return reply.Tokens, nil
}

// wholeWords returns the tokens that are a space and a word of the traffic.
func (w *vllm) wholeWords(ctx context.Context) ([]int, error) {
	var whole []int
	for _, word := range words {
		ids, err := w.tokenize(ctx, object{"model": "tiny", "prompt": " " + word, "add_special_tokens": false})
		if err != nil {
			return nil, err
		}
		if len(ids) == 1 {
			whole = append(whole, int(ids[0]))
		}
	}
	if len(whole) < 4 {
		return nil, fmt.Errorf("only %d words of the traffic are tokens of the model", len(whole))
	}
	return whole, nil
}
