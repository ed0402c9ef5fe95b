package prompt

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

// same compares all of two chains: what was hashed and what waits.
func same(a, b Chain) bool {
	return slices.Equal(a.Hashes, b.Hashes) && a.Bytes == b.Bytes && a.Tokens == b.Tokens && a.hash == b.hash &&
		bytes.Equal(a.tail[:a.n], b.tail[:b.n])
}

func parse(t *testing.T, kind Kind, body string) *Request {
	t.Helper()
	p := new(Parser)
	r, err := p.Parse(kind, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	r.Hash(7)
	return r
}

// However a text is cut into pieces, the hashes are those of its blocks, one after the other.
func TestChainIsTheHashOfItsBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		text := make([]byte, rnd.IntN(1500))
		for i := range text {
			text[i] = byte(rnd.Uint32())
		}
		var want []uint64
		h := xxh3.HashSeed([]byte{domainText}, 9)
		for b := text; len(b) >= BlockBytes; b = b[BlockBytes:] {
			h = xxh3.HashSeed(b[:BlockBytes], h)
			want = append(want, h)
		}
		var c Chain
		c.reset(9, domainText)
		for b := text; len(b) > 0; {
			n := min(len(b), rnd.IntN(300))
			if n == 1 {
				c.mark(b[0])
			} else {
				c.Append(b[:n])
			}
			b = b[n:]
		}
		if !slices.Equal(c.Hashes, want) || c.Bytes != len(text) {
			t.Fatalf("%d bytes: %d hashes, want %d", c.Bytes, len(c.Hashes), len(want))
		}
	}
}

func TestPromptForms(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20) // 320 bytes
	f := func(prompt string, bytes, tokens, hashes []int) {
		t.Helper()
		r := parse(t, Completion, `{"prompt":`+prompt+`}`)
		if r.HasPrompt != (len(bytes) > 0) || len(r.Chains) != len(bytes) {
			t.Fatalf("%.40s: %v, %d chains, want %d", prompt, r.HasPrompt, len(r.Chains), len(bytes))
		}
		for i, c := range r.Chains {
			if c.Bytes != bytes[i] || c.Tokens != tokens[i] || len(c.Hashes) != hashes[i] {
				t.Errorf("%.40s: chain %d has %d bytes, %d tokens, %d hashes", prompt, i, c.Bytes, c.Tokens, len(c.Hashes))
			}
		}
	}
	ids := strings.Repeat("17, 128000,", 20)
	f(`"`+long+`"`, []int{320}, []int{0}, []int{2})
	f(`""`, nil, nil, nil)
	f(`null`, nil, nil, nil)
	f(`[]`, nil, nil, nil)
	f(`{"a":1}`, nil, nil, nil)
	f(`["a", "`+long+`"]`, []int{1, 320}, []int{0, 0}, []int{0, 2})
	f(`[ `+ids+`9 ]`, []int{164}, []int{41}, []int{2})
	f(`[[1,2,3],[`+ids+`4294967295]]`, []int{12, 164}, []int{3, 41}, []int{0, 2})
	f(`[0,1, 2,  3,4.0,5e0,1234567890,6 ,7]`, []int{36}, []int{9}, []int{0})
	f(`[[],[1]]`, []int{0, 4}, []int{0, 1}, []int{0, 0})
	f(`[`+strings.Repeat(`"x",`, maxPrompts+5)+`"y"]`, slices.Repeat([]int{1}, maxPrompts), slices.Repeat([]int{0}, maxPrompts), slices.Repeat([]int{0}, maxPrompts))
}

func TestTokenChain(t *testing.T) {
	var ids []uint32
	var raw []byte
	for i := range uint32(40) {
		ids = append(ids, i*i)
		raw = binary.LittleEndian.AppendUint32(raw, i*i)
	}
	h := xxh3.HashSeed([]byte{domainTokens}, 7)
	h = xxh3.HashSeed(raw[:64], h)
	var c Chain
	c.reset(7, domainTokens)
	c.AppendTokens(ids)
	if c.Tokens != 40 || len(c.Hashes) != 2 || c.Hashes[0] != h || c.Hashes[1] != xxh3.HashSeed(raw[64:128], h) {
		t.Errorf("%+v", c)
	}
	if r := parse(t, Completion, `{"prompt":[0,1,4,9,16,25,36,49,64,81,100,121,144,169,196,2.25e2]}`); r.Chains[0].Hashes[0] != h {
		t.Errorf("the body's ids hash differently")
	}
}

func TestSeedAndDomainSeparate(t *testing.T) {
	text := strings.Repeat("x", 400)
	r := parse(t, Completion, `{"prompt":"`+text+`"}`)
	first := slices.Clone(r.Chains[0].Hashes)
	r.Hash(8)
	if first[0] == r.Chains[0].Hashes[0] {
		t.Errorf("two seeds, one hash")
	}
	r.Hash(7)
	if !slices.Equal(first, r.Chains[0].Hashes) {
		t.Errorf("hashing again gives other hashes")
	}
}

// A long system prompt is shared though its end differs, and so is all of a chat before a differing last message.
func TestPrefixIsShared(t *testing.T) {
	long := strings.Repeat("You are a careful assistant. ", 40)
	f := func(kind Kind, a, b string, want int) {
		t.Helper()
		x, y := parse(t, kind, a).Chains[0].Hashes, parse(t, kind, b).Chains[0].Hashes
		n := 0
		for n < min(len(x), len(y)) && x[n] == y[n] {
			n++
		}
		if n != want {
			t.Errorf("%d blocks shared, want %d", n, want)
		}
	}
	f(Completion, `{"prompt":"`+long+`a"}`, `{"prompt":"`+long+`b and more"}`, len(long)/BlockBytes)
	f(Chat, `{"messages":[{"role":"system","content":"`+long+`a"}]}`, `{"messages":[{"role":"system","content":"`+long+`b"}]}`, (len(long)+8)/BlockBytes)
	f(Chat, `{"messages":[{"role":"system","content":"`+long+`"}]}`, `{"messages":[{"role":"user","content":"`+long+`"}]}`, 0)
	f(Chat, `{"messages":[{"role":"user","content":"`+long+`"}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
		`{"messages":[{"role":"user","content":"`+long+`"}]}`, 0)
}
