package prompt

import "cmp"

// Usage is the worker's own count of tokens, as plain values for a request's record.
type Usage struct {
	Prompt      int  // of the prompt, the cached ones included
	Output      int  // of the answer
	Cached      int  // of the prompt's, found in the worker's cache; means nothing unless CachedKnown
	CachedKnown bool // the usage named the cached tokens, which workers may leave out
	Known       bool // the answer had a usage; without it all counts are 0 and mean nothing
}

// counts are the numbers of the usages of one answer. They may come in parts: Messages has the prompt's at its
// beginning and the answer's at its end, and some workers write one usage for each. A number that comes again is the
// count so far, in every dialect: the last one that is not 0 holds. A sum lost, as it would count a running count many
// times.
type counts struct {
	prompt, output, cached, total int
	made, read                    int // into and from the cache, which Messages leaves out of input_tokens
	cachedKnown, known            bool
}

// scan scans one more usage. vLLM writes it in three dialects:
//
//	chat, completion, embedding: prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details.cached_tokens
//	Responses:                   input_tokens, output_tokens, input_tokens_details.cached_tokens
//	Messages:                    input_tokens (without those of the cache since 0.32), cache_creation_input_tokens,
//	                             cache_read_input_tokens, output_tokens
//	rerank:                      total_tokens alone on some versions
//	Cohere's:                    billed_units and tokens, with input_tokens and output_tokens each
func (c *counts) scan(s *scanner) bool {
	if s.at() != '{' {
		return s.value()
	}
	c.known = true
	var more counts
	ok := s.object(func(key []byte) bool { return more.scanField(s, key) })
	c.add(&more)
	return ok
}

func (c *counts) scanField(s *scanner, key []byte) bool {
	switch string(key) {
	case "prompt_tokens", "input_tokens":
		return s.integer(&c.prompt)
	case "completion_tokens", "output_tokens":
		return s.integer(&c.output)
	case "total_tokens":
		return s.integer(&c.total)
	case "cache_creation_input_tokens":
		return s.integer(&c.made)
	case "cache_read_input_tokens":
		c.cachedKnown = s.at() != 'n'
		return s.integer(&c.read)
	case "billed_units", "tokens":
		var in counts
		ok := s.object(func(key []byte) bool { return in.scanField(s, key) })
		c.prompt, c.output = max(c.prompt, in.prompt), max(c.output, in.output)
		return ok
	case "prompt_tokens_details", "input_tokens_details":
		return s.object(func(key []byte) bool { return c.scanDetail(s, key) })
	}
	return s.value()
}

func (c *counts) scanDetail(s *scanner, key []byte) bool {
	if string(key) == "cached_tokens" && s.at() != 'n' {
		c.cachedKnown = true
		return s.integer(&c.cached)
	}
	return s.value()
}

// add adds a part. A prompt of 0 that was found in the cache is a count all the same.
func (c *counts) add(more *counts) {
	if more.prompt+more.made+more.read > 0 && (more.prompt > 0 || c.made+c.read == 0) {
		c.prompt = more.prompt
	}
	c.made = cmp.Or(more.made, c.made)
	c.read = cmp.Or(more.read, c.read)
	c.output = cmp.Or(more.output, c.output)
	c.cached = cmp.Or(more.cached, c.cached)
	c.total = cmp.Or(more.total, c.total)
	c.cachedKnown = c.cachedKnown || more.cachedKnown
}

// sum returns the usage that the counts are.
func (c *counts) sum(kind Kind) Usage {
	u := Usage{Prompt: c.prompt, Output: c.output, Cached: c.cached, CachedKnown: c.cachedKnown, Known: c.known}
	if kind == Messages {
		u.Prompt += c.made + c.read
		u.Cached = c.read
	}
	if u.Prompt == 0 {
		u.Prompt = max(c.total-u.Output, 0)
	}
	if u.Output == 0 {
		u.Output = max(c.total-u.Prompt, 0)
	}
	return u
}
