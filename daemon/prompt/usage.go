package prompt

// Usage is the worker's own count of tokens, as plain values for a request's record.
type Usage struct {
	Prompt      int  // of the prompt, the cached ones included
	Output      int  // of the answer
	Cached      int  // of the prompt's, found in the worker's cache; means nothing unless CachedKnown
	CachedKnown bool // the usage named the cached tokens, which workers may leave out
	Known       bool // the answer had a usage; without it all counts are 0 and mean nothing
}

// read scans a usage, which replaces what u was. vLLM writes it in three dialects:
//
//	chat, completion, embedding: prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details.cached_tokens
//	Responses:                   input_tokens, output_tokens, input_tokens_details.cached_tokens
//	Messages:                    input_tokens (without those of the cache since 0.32), cache_creation_input_tokens,
//	                             cache_read_input_tokens, output_tokens
//	rerank:                      total_tokens alone on some versions
func (u *Usage) read(s *scanner, kind Kind) bool {
	if s.at() != '{' {
		return s.value()
	}
	*u = Usage{Known: true}
	var made, read, total int
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			return s.integer(&u.Prompt)
		case "completion_tokens", "output_tokens":
			return s.integer(&u.Output)
		case "total_tokens":
			return s.integer(&total)
		case "cache_creation_input_tokens":
			return s.integer(&made)
		case "cache_read_input_tokens":
			u.CachedKnown = s.at() != 'n'
			return s.integer(&read)
		case "prompt_tokens_details", "input_tokens_details":
			return s.object(func(key []byte) bool { return u.readDetail(s, key) })
		}
		return s.value()
	})
	if kind == Messages {
		u.Prompt += made + read
		u.Cached = read
	}
	if u.Prompt == 0 {
		u.Prompt = max(total-u.Output, 0)
	}
	return ok
}

func (u *Usage) readDetail(s *scanner, key []byte) bool {
	if string(key) == "cached_tokens" && s.at() != 'n' {
		u.CachedKnown = true
		return s.integer(&u.Cached)
	}
	return s.value()
}
