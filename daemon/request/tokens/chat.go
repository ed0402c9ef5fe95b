package tokens

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// chat is a chat that may be taken apart between two messages, so that a worker tokenises its end alone.
type chat struct {
	of       Group
	context  digest
	upTo     []digest // of the context and the messages up to each
	fields   []byte   // of the body for /tokenize, without messages: `"model":"m",`
	messages [][]byte
	answered bool // there is an answer in it
}

// newChat returns the chat of a question, nil if it cannot be taken apart: it ends otherwise than with the beginning
// of an answer, or is not one that /tokenize may be asked for.
func newChat(q *Question, body []byte) *chat {
	if q.kind != prompt.Chat || q.ending {
		return nil
	}
	name, _ := json.Marshal(q.model)
	c := &chat{of: Group{q.model, q.Fence}, context: q.context, upTo: q.messages}
	if q.model != "" {
		c.fields = append(append(append(c.fields, `"model":`...), name...), ',')
	}
	prompt.Fields(body, func(name, value []byte) bool {
		switch field := string(name); {
		case field == "messages":
			prompt.Elements(value, func(m []byte) bool {
				c.messages = append(c.messages, m)
				return true
			})
		case shared[field] && field != "model" && field != "prompt":
			c.fields = append(append(append(c.fields, '"'), name...), `":`...)
			c.fields = append(append(c.fields, value...), ',')
		}
		return true
	})
	c.answered = slices.Contains(q.roles, roleAssistant)
	return c
}

// opener stands for all messages of a chat before those that are asked for.
const opener = `{"role":"user","content":"x"}`

// body returns the body for /tokenize of a chat that begins with the opener and goes on with the messages from one on.
func (c *chat) body(from int, more string) []byte {
	b := append(append(append([]byte{'{'}, c.fields...), more...), `"messages":[`+opener...)
	for _, m := range c.messages[from:] {
		b = append(append(b, ','), m...)
	}
	return append(b, "]}"...)
}

// stemKey returns the key under which the cache has the ids of the messages up to one, without the beginning of an
// answer.
func stemKey(upTo digest) digest { return upTo.then(digest{2}) }

// known returns how many leading messages of the chat have known ids, and these ids. It never returns all of the
// messages.
func (s *Source) known(c *chat) (n int, stem []uint32) {
	for n = len(c.upTo) - 1; n > 0; n-- {
		if ids, ok := s.cache.get(stemKey(c.upTo[n-1])); ok {
			return n, ids
		}
	}
	return 0, nil
}

// joined returns the ids of a chat whose first n messages have the stem: /tokenize is asked for the others behind the
// opener. It returns none, and no error, if the ids do not come apart where they must.
func (s *Source) joined(ctx context.Context, c *chat, n int, stem []uint32) ([]uint32, error) {
	base, turn, _ := s.hinges.get(c.context, time.Now())
	if len(turn) == 0 {
		return nil, errNoWay
	}
	end, err := s.asker.ask(ctx, &query{of: c.of, tokenize: c.body(n, "")})
	if err != nil || len(end) <= len(base) || !slices.Equal(end[:len(base)], base) || end[len(base)] != turn[0] {
		return nil, err
	}
	return append(slices.Clip(stem), end[len(base):]...), nil
}

// sizeOf returns how many bytes of a chat a worker will be sent: all, unless its beginning will not be asked for.
func (s *Source) sizeOf(c *chat, all int) int {
	if c == nil {
		return all
	}
	if _, _, proven := s.hinges.get(c.context, time.Now()); !proven {
		return all
	}
	n, _ := s.known(c)
	if n == 0 {
		return all
	}
	size := 0
	for _, m := range c.messages[n:] {
		size += len(m)
	}
	return size
}

// extend returns the ids of a chat of which the beginning is known, where chats of its context have been shown to come
// apart.
func (s *Source) extend(ctx context.Context, c *chat) ([]uint32, bool) {
	if _, _, proven := s.hinges.get(c.context, time.Now()); !proven {
		return nil, false
	}
	n, stem := s.known(c)
	if n == 0 {
		return nil, false
	}
	ids, err := s.joined(ctx, c, n, stem)
	if err == nil && ids == nil { // the template is another than it was
		s.hinges.compared(c.context, false, time.Now())
	}
	return ids, ids != nil
}

// keep enters a chat's ids in the cache, and those of its messages alone.
func (s *Source) keep(key digest, c *chat, ids []uint32) {
	keys, counts := []digest{key}, []int{len(ids)}
	if c != nil {
		_, turn, _ := s.hinges.get(c.context, time.Now())
		if stem := len(ids) - len(turn); len(turn) > 0 && stem > 0 && slices.Equal(ids[stem:], turn) {
			keys, counts = append(keys, stemKey(c.upTo[len(c.upTo)-1])), append(counts, stem)
			for n, one := len(c.upTo)-1, false; n > 0 && !one; n-- { // the turn before shares this one's memory
				if had, ok := s.cache.get(stemKey(c.upTo[n-1])); ok {
					one = true
					if len(had) < len(ids) && slices.Equal(had, ids[:len(had)]) {
						keys, counts = append(keys, stemKey(c.upTo[n-1])), append(counts, len(had))
					}
				}
			}
		}
	}
	s.cache.put(ids, keys, counts)
}

// check compares what a chat's parts make with the ids of all of it, and looks for the hinge of its context, where
// either is due. Nobody waits for it.
func (s *Source) check(ctx context.Context, c *chat, o Outcome, ids []uint32) {
	_, turn, proven := s.hinges.get(c.context, time.Now())
	switch {
	case turn == nil && c.answered && s.hinges.wants(c.context, time.Now()):
		if err := s.findHinge(ctx, c); err != nil && !isFinal(err) {
			s.hinges.forget(c.context, time.Now().Add(lookAgain))
		}
	case turn != nil && o == Asked && !proven:
		n, stem := s.known(c)
		if n == 0 {
			return
		}
		if parts, err := s.joined(ctx, c, n, stem); err == nil {
			s.hinges.compared(c.context, slices.Equal(parts, ids), time.Now())
		}
	case o == Extended && s.hinges.audits(c.context):
		b := append(append([]byte{'{'}, c.fields...), `"messages":[`...)
		for _, m := range c.messages {
			b = append(append(b, m...), ',')
		}
		b[len(b)-1] = ']'
		if all, err := s.asker.ask(ctx, &query{of: c.of, tokenize: append(b, '}')}); err == nil {
			right := slices.Equal(all, ids)
			s.hinges.compared(c.context, right, time.Now())
			if !right {
				s.warned.Warn(s.log, "apart", "a chat template does not print messages one by one: chats are tokenised "+
					"whole", "model", c.of.Model)
			}
		}
	}
}

// findHinge asks how the context's template begins an answer, and keeps that if it begins with a token that no text
// around it can change. An error means that a worker did not answer.
func (s *Source) findHinge(ctx context.Context, c *chat) error {
	end := len(c.messages)
	base, err := s.asker.ask(ctx, &query{of: c.of, tokenize: c.body(end, `"add_generation_prompt":false,`)})
	if err != nil {
		return err
	}
	whole, err := s.asker.ask(ctx, &query{of: c.of, tokenize: c.body(end, "")})
	if err != nil || len(whole) <= len(base) || !slices.Equal(whole[:len(base)], base) {
		return err
	}
	turn := whole[len(base):]
	is, err := s.isBoundary(ctx, c.of, turn[0])
	if is {
		s.hinges.set(c.context, base, turn)
	}
	return err
}

// isBoundary reports whether a token is one that the tokenizer cuts out of a text before it looks at the rest: written
// as <...> or [...], which no learnt token is, and a token of its own between letters, blanks and its likes.
func (s *Source) isBoundary(ctx context.Context, of Group, id uint32) (bool, error) {
	text, err := s.asker.detokenize(ctx, of, id)
	inner := len(text) > 2 && strings.ContainsAny(text[:1], "<[") && strings.ContainsAny(text[len(text)-1:], ">]")
	if err != nil || !inner {
		return false, err
	}
	around := "a" + text + "b \n" + text + text + "\n\n" + text + " "
	ids, err := s.asker.ask(ctx, &query{of: of, tokenize: tokenizeText(of.Model, around)})
	n := 0
	for _, other := range ids {
		if other == id {
			n++
		}
	}
	return err == nil && n == boundaries, err
}
