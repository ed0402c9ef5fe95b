package prompt

// Usage is the worker's own count of tokens, as plain values for a request's record.
type Usage struct {
	Prompt      int  // of the prompt, the cached ones included
	Output      int  // of the answer
	Cached      int  // of the prompt's, found in the worker's cache; means nothing unless CachedKnown
	CachedKnown bool // the usage named the cached tokens, which workers may leave out
	Known       bool // the answer had a usage; without it all counts are 0 and mean nothing
}

// readUsage takes a usage, which replaces an earlier one. vLLM writes it in three dialects:
//
//	chat, completion, embedding: prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details.cached_tokens
//	Responses:                   input_tokens, output_tokens, input_tokens_details.cached_tokens
//	Messages:                    input_tokens (without those of the cache since 0.32), cache_creation_input_tokens,
//	                             cache_read_input_tokens, output_tokens
//	rerank:                      total_tokens alone on some versions
func (r *Reply) readUsage() bool {
	s := &r.w.scan
	if s.at() != '{' {
		return s.value()
	}
	u := Usage{Known: true}
	var made, read, total int
	detail := func(key []byte) bool {
		if string(key) == "cached_tokens" && s.at() != 'n' {
			u.CachedKnown = true
			return s.int(&u.Cached)
		}
		return s.value()
	}
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			return s.int(&u.Prompt)
		case "completion_tokens", "output_tokens":
			return s.int(&u.Output)
		case "total_tokens":
			return s.int(&total)
		case "cache_creation_input_tokens":
			return s.int(&made)
		case "cache_read_input_tokens":
			u.CachedKnown = s.at() != 'n'
			return s.int(&read)
		case "prompt_tokens_details", "input_tokens_details":
			return s.object(detail)
		}
		return s.value()
	})
	if r.kind == Messages {
		u.Prompt, u.Cached = u.Prompt+made+read, read
	}
	if u.Prompt == 0 {
		u.Prompt = max(total-u.Output, 0)
	}
	r.usage = u
	return ok
}

// int reads a number.
func (s *scanner) int(into *int) bool {
	var v span
	ok := s.take(&v)
	*into = int(min(max(number(v.of(s.b)), 0), 1<<40))
	return ok
}
