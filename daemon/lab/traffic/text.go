package traffic

import (
	"encoding/binary"
	"slices"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// AppendText appends the text of a prompt, engine.BytesPerToken bytes a token. The letters need no escaping in JSON.
func AppendText(b []byte, parts []Part) []byte {
	for _, p := range parts {
		if p.Answer {
			b = engine.NewReply(p.ID).AppendJSON(b, 0, p.Tokens)
			continue
		}
		n := p.Tokens * engine.BytesPerToken
		b = slices.Grow(b, n+8)
		at, base := len(b), mix(p.ID)
		for i := 0; i < n; i += 8 {
			b = binary.LittleEndian.AppendUint64(b, mix(base+uint64(i))&0x0f0f0f0f0f0f0f0f+0x6161616161616161)
		}
		b = b[:at+n]
	}
	return b
}

// AppendTokens appends the token ids of a text of AppendText, as the engine's tokenizer makes them.
func AppendTokens(ids []uint32, text []byte) []uint32 {
	ids = slices.Grow(ids, len(text)/engine.BytesPerToken)
	for ; len(text) >= engine.BytesPerToken; text = text[engine.BytesPerToken:] {
		ids = append(ids, binary.LittleEndian.Uint32(text))
	}
	return ids
}

// mix returns what splitmix64 makes of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
