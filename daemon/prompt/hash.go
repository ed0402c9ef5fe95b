package prompt

import "math"

// Hash fills Chains. seed is the namespace's secret: without it a tenant could make two prompts collide, and it is known only
// after the scan, as it hangs on model and salt. Hash may be called again with another seed.
func (r *Request) Hash(seed uint64) {
	r.Chains = r.Chains[:0]
	switch {
	case !r.HasPrompt:
	case r.Kind == Responses:
		r.hashItems(r.chain(seed, domainResponses))
	case r.Kind == Rerank || r.Kind == Score:
		c := r.chain(seed, domainText)
		c.fixed = true
		c.value(r.pair[0].of(r.body))
		c.value(r.pair[1].of(r.body))
	case len(r.messages) > 0:
		c := r.chain(seed, domainChat)
		r.w.tools(c, r.tools.of(r.body))
		if r.Kind == Messages || r.Kind == CountTokens {
			r.hashBlocks(c)
			break
		}
		for i := range r.messages {
			c.message(&r.w, r.body, &r.messages[i])
		}
	default:
		r.hashPrompt(seed)
	}
}

// FirstChoice is the index in the reply of the first answer to prompt i.
func (r *Request) FirstChoice(i int) int { return i * r.N }

// chain opens the next chain, keeping the memory of an earlier one.
func (r *Request) chain(seed uint64, domain byte) *Chain {
	n := len(r.Chains)
	if n < cap(r.Chains) {
		r.Chains = r.Chains[:n+1]
	} else {
		r.Chains = append(r.Chains, Chain{})
	}
	c := &r.Chains[n]
	c.reset(seed, domain)
	c.fixed = r.echo || r.resume || r.partial || !r.Kind.Generates()
	return c
}

// hasPrompt reports whether the prompt is one of the forms that can be hashed: text, token ids, or a list of these.
func (r *Request) hasPrompt() bool {
	v := r.prompt.of(r.body)
	if len(inside(v)) > 0 {
		return true
	}
	if len(v) == 0 || v[0] != '[' {
		return false
	}
	var s scanner
	s.reset(v)
	s.i = 1
	s.space()
	c := s.at()
	return c == '"' || c == '[' || c-'0' <= 9
}

// hashPrompt makes a chain per prompt of a completion.
func (r *Request) hashPrompt(seed uint64) {
	v := r.prompt.of(r.body)
	if v[0] == '"' {
		r.chain(seed, domainText).text(inside(v))
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
			ok := s.take(&text)
			r.chain(seed, domainText).text(inside(text.of(v)))
			return ok
		case c == '[':
			ids := r.chain(seed, domainTokens)
			return s.array(func() bool { return s.token(ids) })
		}
		if ids == nil {
			ids = r.chain(seed, domainTokens)
		}
		return s.token(ids)
	})
}

// token reads a token id into the chain, and those right behind it.
func (s *scanner) token(c *Chain) bool {
	s.ints(c)
	s.space()
	lo := s.i
	if !s.value() {
		return false
	}
	c.token(uint32(min(max(number(s.b[lo:s.i]), 0), math.MaxUint32)))
	return true
}
