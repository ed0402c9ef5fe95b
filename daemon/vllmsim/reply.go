package vllmsim

// reply is the text of one sequence: deterministic pseudo-words of 4 bytes a token, so that the text tokenises to the
// very tokens that were generated and the client's next turn hits the cache over the reply as well. It is a function of
// its seed, so neither text nor tokens are kept. A reply that must be JSON is that text instead.
type reply struct {
	seed  uint64
	stop  int    // index of the <|end|> token, -1 for none
	fixed string // ASCII; "" is pseudo-words
}

// fixedReply is a reply of one ASCII text, and then the end.
func fixedReply(text string) reply { return reply{stop: CountTokens(text), fixed: text} }

const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
)

// word is the 4 bytes of token i: "kalo" or "kal ".
func (r reply) word(i int) [BytesPerToken]byte {
	h := mix(r.seed, uint64(i)+1)
	w := [BytesPerToken]byte{consonants[h&15], vowels[h>>4&3], consonants[h>>6&15], vowels[h>>10&3]}
	if h>>12&1 == 0 {
		w[3] = ' '
	}
	return w
}

// token is the id of token i.
func (r reply) token(i int) uint32 {
	if i == r.stop {
		return tokenEnd
	}
	if r.fixed != "" {
		var one [1]uint32
		return appendTokens(one[:0], r.cut(i, i+1))[0]
	}
	w := r.word(i)
	return uint32(w[0]) | uint32(w[1])<<8 | uint32(w[2])<<16 | uint32(w[3])<<24
}

// cut is tokens [from, to) of a fixed text.
func (r reply) cut(from, to int) string {
	return r.fixed[min(from*BytesPerToken, len(r.fixed)):min(to*BytesPerToken, len(r.fixed))]
}

// appendText appends the text of tokens [from, to), as it stands within a JSON string; <|end|> has none.
func (r reply) appendText(b []byte, from, to int) []byte {
	if r.fixed != "" {
		for _, c := range []byte(r.cut(from, to)) {
			if c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
		return b
	}
	for i := from; i < to; i++ {
		if i != r.stop {
			w := r.word(i)
			b = append(b, w[:]...)
		}
	}
	return b
}

// text is the whole of what has been produced.
func (q *sequence) text() string {
	n := int(q.produced.Load())
	if q.reply.fixed != "" {
		return q.reply.cut(0, n)
	}
	return string(q.reply.appendText(nil, 0, n))
}
