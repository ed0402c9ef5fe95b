package engine

// Reply is the text that a sequence generates: deterministic pseudo-words of 4 bytes a token. Sent back in the next
// turn the text gives the very tokens that were generated, so the cache reaches over the reply too. A Reply is a
// function of its seed, so neither text nor tokens are kept. A reply that must be JSON is that text instead.
type Reply struct {
	seed  uint64
	skip  int    // tokens that stand in the prompt already
	stop  int    // index of the <|end|> token behind those, -1 for none
	fixed string // ASCII; "" is pseudo-words
}

// NewReply returns pseudo-words without an end.
func NewReply(seed uint64) Reply { return Reply{seed: seed, stop: -1} }

// FixedReply returns a reply of one ASCII text, and then the end.
func FixedReply(text string) Reply { return Reply{stop: CountTokens(text), fixed: text} }

// EndingNear returns the reply with an end: behind mean tokens on average, from half of that to half as many again, and
// never before least tokens.
func (r Reply) EndingNear(mean, least int) Reply {
	r.stop = max(least, mean/2+int(r.seed%uint64(mean))-r.skip)
	return r
}

const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
)

// word returns the 4 bytes of token i: "kalo" or "kal ".
func (r Reply) word(i int) [BytesPerToken]byte {
	h := Mix(r.seed, uint64(r.skip+i)+1)
	w := [BytesPerToken]byte{consonants[h&15], vowels[h>>4&3], consonants[h>>6&15], vowels[h>>10&3]}
	if h>>12&1 == 0 {
		w[3] = ' '
	}
	return w
}

// Token returns the id of token i.
func (r Reply) Token(i int) uint32 {
	if i == r.stop {
		return TokenEnd
	}
	if r.fixed != "" {
		var one [1]uint32
		return AppendTokens(one[:0], r.cut(i, i+1))[0]
	}
	w := r.word(i)
	return uint32(w[0]) | uint32(w[1])<<8 | uint32(w[2])<<16 | uint32(w[3])<<24
}

// cut returns tokens [from, to) of a fixed text.
func (r Reply) cut(from, to int) string {
	return r.fixed[min(from*BytesPerToken, len(r.fixed)):min(to*BytesPerToken, len(r.fixed))]
}

// AppendJSON appends the text of tokens [from, to), as it stands within a JSON string. The end token has no text.
func (r Reply) AppendJSON(b []byte, from, to int) []byte {
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

// Text returns the text of the first n tokens.
func (r Reply) Text(n int) string {
	if r.fixed != "" {
		return r.cut(0, n)
	}
	return string(r.AppendJSON(nil, 0, n))
}
