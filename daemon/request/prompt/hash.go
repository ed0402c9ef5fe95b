package prompt

import (
	"encoding/binary"
	"math"
)

// maxPrompts bounds the prompts of a completion. What comes after is not hashed.
const maxPrompts = 1 << 10

// Hash fills Chains. seed is the namespace's secret, without which a tenant could make two prompts collide. It is known
// only after the scan, as it depends on model and salt. Hash may be called again with another seed.
func (r *Request) Hash(seed uint64) {
	r.Chains = r.Chains[:0]
	switch {
	case !r.HasPrompt:
	case r.Kind == Responses:
		r.hashResponses(r.addChain(seed, domainResponses))
	case r.Kind == Rerank || r.Kind == Score:
		c := r.addChain(seed, domainText)
		c.fixed = true
		c.value(r.fields.raw(fieldQuery))
		c.value(r.fields.raw(fieldDocuments))
	case r.Kind == Messages && len(r.talk.messages) > 0, r.Kind == CountTokens && len(r.talk.messages) > 0:
		c := r.addChain(seed, domainChat)
		r.w.tools(c, r.fields.raw(fieldTools))
		r.talk.writeBlocks(&r.w, c, r.fields.raw(fieldInstructions))
	case len(r.talk.starts) > 0:
		for i, from := range r.talk.starts {
			to := len(r.talk.messages)
			if i+1 < len(r.talk.starts) {
				to = r.talk.starts[i+1]
			}
			r.hashChat(seed, from, to)
		}
	case len(r.talk.messages) > 0:
		r.hashChat(seed, 0, len(r.talk.messages))
	default:
		r.hashPrompt(seed)
	}
}

// FirstChoice returns the index in the reply of the first answer to prompt i.
func (r *Request) FirstChoice(i int) int { return i * r.N }

// addChain begins the next chain, keeping the memory of an earlier one.
func (r *Request) addChain(seed uint64, domain byte) *Chain {
	n := len(r.Chains)
	if n < cap(r.Chains) {
		r.Chains = r.Chains[:n+1]
	} else {
		r.Chains = append(r.Chains, Chain{})
	}
	c := &r.Chains[n]
	c.reset(seed, domain)
	c.watch = r.Watch
	c.fixed = r.fixed || !r.Kind.Generates()
	return c
}

// hashChat makes a chain of the messages from one index up to another.
func (r *Request) hashChat(seed uint64, from, to int) {
	c := r.addChain(seed, domainChat)
	r.w.tools(c, r.fields.raw(fieldTools))
	r.talk.writeChat(&r.w, c, from, to)
	c.open = r.open && to > from && r.talk.endsInText(&r.talk.messages[to-1])
}

// hashResponses writes a Responses input: instructions are a system message, a bare text is the user's.
func (r *Request) hashResponses(c *Chain) {
	r.w.tools(c, r.fields.raw(fieldTools))
	if v := r.fields.inside(fieldInstructions); len(v) > 0 {
		c.plain("system", v)
	}
	if len(r.talk.messages) == 0 {
		c.plain("user", r.fields.inside(fieldInput))
		return
	}
	r.talk.writeItems(&r.w, c)
}

// hashPrompt makes a chain per prompt of a completion.
func (r *Request) hashPrompt(seed uint64) {
	v := r.prompt()
	if v[0] == '"' {
		r.addChain(seed, domainText).text(Inside(v))
		return
	}
	var s scanner
	s.reset(v)
	var ids *Chain
	s.array(func() bool {
		switch c := s.at(); {
		case len(r.Chains) == maxPrompts:
			return false
		case c == '"':
			var text span
			ok := s.locate(&text)
			r.addChain(seed, domainText).text(Inside(text.of(v)))
			return ok
		case c == '[':
			ids := r.addChain(seed, domainTokens)
			return s.array(func() bool { return readTokens(&s, ids) })
		}
		if ids == nil {
			ids = r.addChain(seed, domainTokens)
		}
		return readTokens(&s, ids)
	})
}

// readTokens appends a token id to the chain, and those right behind it.
func readTokens(s *scanner, c *Chain) bool {
	s.ints(c)
	s.space()
	lo := s.i
	if !s.value() {
		return false
	}
	c.token(uint32(min(max(parseNumber(s.b[lo:s.i]), 0), math.MaxUint32)))
	return true
}

// maxOpening bounds how much of a text prompt is its opening.
const maxOpening = 1 << 10

// Opening returns what all turns of a chat have in common: a digest of the user's first message, or the beginning of a
// prompt or text input. It is "" if the body has none of these. Systems' texts and tools do not count: some clients
// change them from turn to turn.
func (r *Request) Opening() string {
	if !r.HasPrompt || r.work == nil {
		return ""
	}
	for i := range r.talk.messages {
		m := &r.talk.messages[i]
		if m.form == formMessage && string(r.talk.role(m)) == "user" {
			return r.openingOf(m.content.of(r.talk.body))
		}
	}
	switch text := r.prompt(); {
	case len(r.talk.messages) > 0 || len(text) == 0:
		return ""
	case r.Kind == Responses: // the next turn has it in a list
		return r.openingOf(text)
	default:
		return string(text[:min(len(text), maxOpening)])
	}
}

// openingOf returns the digest of a message's content.
func (r *Request) openingOf(content []byte) string {
	var c Chain
	c.reset(0, domainChat)
	r.w.content(&c, content)
	return string(binary.LittleEndian.AppendUint64(nil, c.sum()))
}
