package engine

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// BytesPerToken is the tokenizer: every run of 4 bytes of UTF-8 text is one token, the last one of a text may be
// shorter.
const BytesPerToken = 4

// A token id is a uint32, laid out so that text and ids can be turned into each other:
//
//	b0 | b1<<8 | b2<<16 | b3<<24     a full token; no byte of UTF-8 is above 0xf4, so these end below 0xf8000000
//	(0xf8+n)<<24 | bytes             the last 1..3 bytes of a text, n of them
//	0xff000000 | k                   special token k of specials
//
// Worked values: "abcd" = 0x64636261 = 1684234849; "a" = 0xf9000061 = 4177526881; <|user|> = 0xff000002 = 4278190082.
const (
	partialTop = 0xf8
	specialTop = 0xff000000
)

// The special tokens, of which a chat template builds a prompt. TokenEnd ends a message and a reply.
const (
	TokenEnd = specialTop + iota
	TokenSystem
	TokenUser
	TokenAssistant
	TokenTool
	TokenOther
	TokenTools
	TokenCalls
	TokenPart
)

// specials holds the texts of the special tokens, by their number. In a prompt they are plain text: only the template
// makes the tokens, so a user's words never forge a role.
var specials = [...]string{
	"<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|other|>", "<|tools|>", "<|calls|>", "<|part|>",
}

// AppendTokens appends the tokens of one text. Each text starts a token of its own, so what was one message's content
// is the same run of tokens wherever it stands.
func AppendTokens(ids []uint32, text string) []uint32 {
	for len(text) >= BytesPerToken {
		ids = append(ids, uint32(text[0])|uint32(text[1])<<8|uint32(text[2])<<16|uint32(text[3])<<24)
		text = text[BytesPerToken:]
	}
	if len(text) == 0 {
		return ids
	}
	id := uint32(partialTop+len(text)) << 24
	for i := range len(text) {
		id |= uint32(text[i]) << (8 * i)
	}
	return append(ids, id)
}

// AppendTokenText appends the text of one token. It returns false if the id is no token.
func AppendTokenText(text []byte, id uint32) ([]byte, bool) {
	switch top := id >> 24; {
	case top < partialTop:
		return binary.LittleEndian.AppendUint32(text, id), true
	case top == specialTop>>24:
		if k := id - specialTop; k < uint32(len(specials)) {
			return append(text, specials[k]...), true
		}
	case top > partialTop && top < partialTop+BytesPerToken:
		n := int(top - partialTop)
		if id&0xffffff>>(8*n) != 0 {
			return text, false
		}
		for i := range n {
			text = append(text, byte(id>>(8*i)))
		}
		return text, true
	}
	return text, false
}

// TextOfTokens returns a text of exactly n tokens in which every aligned block of 16 tokens depends on label, so that
// two labels never share a cached block. A replay client makes a prompt of a stated length out of a block's number
// with it.
func TextOfTokens(label uint64, n int) string {
	var b strings.Builder
	b.Grow(n * BytesPerToken)
	word := strconv.FormatUint(label, 36)
	word = strings.Repeat("0", 13-len(word)) + word // 36^13 > 2^64
	for i := 0; b.Len() < n*BytesPerToken; i++ {
		b.WriteString(word)
		b.WriteByte(' ')
		b.WriteByte("abcdefghijklmnopqrstuvwxyz"[i%26])
		b.WriteByte(' ')
	}
	return b.String()[:n*BytesPerToken]
}

// CountTokens returns the number of tokens of one text.
func CountTokens(text string) int { return (len(text) + BytesPerToken - 1) / BytesPerToken }
