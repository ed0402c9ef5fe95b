package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// turns is how long each chat is.
const turns = 4

func checkChat(ctx context.Context, s *scene) (string, error) { return s.chats(ctx, false) }

func checkChatStreamed(ctx context.Context, s *scene) (string, error) { return s.chats(ctx, true) }

// chats plays two chats, turn by turn. Each must stay on the worker that holds it, and from the second turn on the
// engine itself must report the turn before as cached, but for blocks of 32 tokens that were not yet full.
func (s *scene) chats(ctx context.Context, stream bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var figures [2]string
	var messages [2][]any
	var worker [2]string
	var before [2]int
	for i := range messages {
		messages[i] = said("system", fresh(150))
	}
	for turn := range turns {
		for i := range messages {
			messages[i] = append(messages[i], said("user", fresh(20))...)
			a := s.router.client.post(ctx, "/v1/chat/completions", chatBody(messages[i], 24, stream))
			if err := a.fault(); err != nil {
				return "", fmt.Errorf("chat %d, turn %d: %w", i+1, turn+1, err)
			}
			prompt, cached := a.number("usage", "prompt_tokens"), a.number("usage", "prompt_tokens_details", "cached_tokens")
			if turn == 0 {
				worker[i] = a.worker()
				figures[i] = fmt.Sprintf("%s: %d of %d tokens cached", worker[i], max(0, cached), prompt)
			} else {
				figures[i] += fmt.Sprintf(", %d of %d", cached, prompt)
			}
			if a.worker() != worker[i] {
				return "", fmt.Errorf("chat %d, turn %d went to %q, the turns before to %q (%s)", i+1, turn+1, a.worker(),
					worker[i],
					a.header.Get("X-Warmpath-Candidates"))
			}
			if turn > 0 && cached < before[i]-64 {
				return "", fmt.Errorf("chat %d, turn %d at %s: %d tokens cached, the turn before had %d", i+1, turn+1, worker[i],
					cached, before[i])
			}
			before[i] = prompt
			messages[i] = append(messages[i], said("assistant", a.reply())...)
		}
	}
	return strings.Join(figures[:], "; "), nil
}

// reply is the text of a chat's answer.
func (a *answer) reply() string {
	if !a.events() {
		return a.text("choices", 0, "message", "content")
	}
	var b strings.Builder
	a.each(func(event any) {
		text, _ := dig(event, []any{"choices", 0, "delta", "content"}).(string)
		b.WriteString(text)
	})
	return b.String()
}
