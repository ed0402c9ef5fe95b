package kvevents

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// First bytes of msgpack values.
const (
	mpNil     = 0xc0
	mpFalse   = 0xc2
	mpTrue    = 0xc3
	mpBin8    = 0xc4
	mpExt8    = 0xc7
	mpFloat64 = 0xcb
	mpInt64   = 0xd3
	mpStr8    = 0xd9
	mpArray32 = 0xdd
	mpMap32   = 0xdf
)

// lines is a Sink that writes down what it is given.
type lines []string

func (l *lines) Store(s *blocks.Stored) {
	parent := "nil"
	if s.HasParent {
		parent = fmt.Sprint(s.Parent)
	}
	line := fmt.Sprintf("store %s %v parent %s tokens %v size %d", s.Medium, s.Hashes, parent, s.Tokens, s.BlockSize)
	for _, x := range [][2]string{{"adapter", s.Adapter}, {"salt", s.Salt}, {"session", s.Session}} {
		if x[1] != "" {
			line += " " + x[0] + " " + x[1]
		}
	}
	*l = append(*l, line)
}

func (l *lines) Remove(m blocks.Medium, hashes []uint64) {
	*l = append(*l, fmt.Sprintf("remove %s %v", m, hashes))
}

func (l *lines) Clear() { *l = append(*l, "clear") }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vectors were encoded by msgspec 0.21, as vLLM does.
var vectors = []struct {
	name, hex string
	batch     Batch
	want      []string
}{
	{"array of 7", "93cb3ff80000000000009197ab426c6f636b53746f72656492cf0102030405060708cff1f2f3f4f5f6f7f8c09801020304ce0001f40005060704c0a347505500",
		Batch{At: 1.5, HasRank: true, Events: 1},
		[]string{"store gpu [72623859790382856 17434265340928784376] parent nil tokens [1 2 3 4 128000 5 6 7] size 4"}},
	{"removed and cleared", "93cb40040000000000009293ac426c6f636b52656d6f76656491cf0102030405060708a347505591b0416c6c426c6f636b73436c6561726564c0",
		Batch{At: 2.5, Events: 2}, []string{"clear"}}, // nothing was stored: there is no group to remove from
	{"array of 12", "93cb400c000000000000919cab426c6f636b53746f72656491cff1f2f3f4f5f6f7f8cf010203040506070894090a0b0c04c0a3475055c091c000ae66756c6c5f617474656e74696f6ec001",
		Batch{At: 3.5, Rank: 1, HasRank: true, Events: 1},
		[]string{"store gpu [17434265340928784376] parent 72623859790382856 tokens [9 10 11 12] size 4"}},
	{"maps", "93cb4012000000000000938ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cff1f2f3f4f5f6f7f8b1706172656e745f626c6f636b5f68617368cf0102030405060708a9746f6b656e5f69647394090a0b0caa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797391c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf0102030405060708a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400",
		Batch{At: 4.5, HasRank: true, Events: 3},
		[]string{"store gpu [17434265340928784376] parent 72623859790382856 tokens [9 10 11 12] size 4",
			"remove gpu [72623859790382856]", "clear"}},
	{"raw digest", "93cb40160000000000009197ab426c6f636b53746f72656491c420000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fc0940102030404c0a347505500",
		Batch{At: 5.5, HasRank: true, Events: 1},
		[]string{"store gpu [1736447835066146335] parent nil tokens [1 2 3 4] size 4"}},
	{"sliding window", "93cb401a000000000000918ca474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cf0102030405060708b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964739401020304aa626c6f636b5f73697a6504a76c6f72615f696403a66d656469756da3435055a96c6f72615f6e616d65a76d792d6c6f7261aa65787472615f6b6579739192a76d792d6c6f7261a673616c742d61a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae736c6964696e675f77696e646f77bc6b765f63616368655f737065635f736c6964696e675f77696e646f77cd100000",
		Batch{At: 6.5, HasRank: true, Events: 1}, nil},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		var d Decoder
		var got lines
		b, err := d.Decode(unhex(t, v.hex), &got)
		if err != nil || b != v.batch || !slices.Equal(got, v.want) {
			t.Errorf("%s: %+v, %v, %q; want %+v, %q", v.name, b, err, got, v.batch, v.want)
		}
	}
}

// The last vector with another kind in the place of sliding_window: adapter and salt are read.
func TestAdapterAndSalt(t *testing.T) {
	in := strings.Replace(vectors[5].hex, "ae736c6964696e675f77696e646f77bc", "ae66756c6c5f617474656e74696f6ebc", 1)
	var d Decoder
	var got lines
	if _, err := d.Decode(unhex(t, in), &got); err != nil || len(got) != 1 || got[0] !=
		"store cpu [72623859790382856] parent nil tokens [1 2 3 4] size 4 adapter my-lora salt salt-a" {
		t.Errorf("%v, %q", err, got)
	}
}

// pack encodes what a test is made of: nil, int, uint64, string, []byte, float64, []any, and maps as pairs.
func pack(v any) []byte {
	switch v := v.(type) {
	case nil:
		return []byte{mpNil}
	case bool:
		return []byte{map[bool]byte{false: mpFalse, true: mpTrue}[v]}
	case int:
		if v >= 0 {
			return pack(uint64(v))
		}
		return binary.BigEndian.AppendUint64([]byte{mpInt64}, uint64(v))
	case uint64:
		if v < 128 {
			return []byte{byte(v)}
		}
		return binary.BigEndian.AppendUint64([]byte{mpUint64}, v)
	case float64:
		return append([]byte{mpFloat64}, make([]byte, 8)...)
	case string:
		return append(binary.BigEndian.AppendUint16([]byte{mpStr8 + 1}, uint16(len(v))), v...)
	case []byte:
		return append(binary.BigEndian.AppendUint32([]byte{mpBin8 + 2}, uint32(len(v))), v...)
	case []any:
		return packAll(binary.BigEndian.AppendUint32([]byte{mpArray32}, uint32(len(v))), v)
	case compact:
		switch {
		case v < 1<<7:
			return []byte{byte(v)}
		case v < 1<<8:
			return []byte{mpUint8, byte(v)}
		case v < 1<<16:
			return []byte{mpUint16, byte(v >> 8), byte(v)}
		}
		return binary.BigEndian.AppendUint32([]byte{mpUint32}, uint32(v))
	case pairs:
		return packAll(binary.BigEndian.AppendUint32([]byte{mpMap32}, uint32(len(v)/2)), v)
	}
	panic(fmt.Sprintf("BUG: pack %T", v))
}

type pairs []any

// compact is an integer in its shortest form, as msgpack libraries write it.
type compact uint32

func packAll(dst []byte, all []any) []byte {
	for _, v := range all {
		dst = append(dst, pack(v)...)
	}
	return dst
}

type list = []any

// batch is a payload of the events.
func batch(events ...any) []byte { return pack(list{1.5, events, 0}) }

func TestEvents(t *testing.T) {
	h := list{7}
	four := list{1, 2, 3, 4}
	stored := func(fields ...any) list { return append(list{"BlockStored"}, fields...) }
	f := func(name string, events list, want ...string) {
		t.Helper()
		var d Decoder
		var got lines
		b, err := d.Decode(batch(events...), &got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q; want %q", name, err, got, want)
		}
		if b.Events != len(events) {
			t.Errorf("%s: %d events; want %d", name, b.Events, len(events))
		}
	}
	plain := "store gpu [7] parent nil tokens [1 2 3 4] size 4"
	f("nothing", list{})
	f("array of 6", list{stored(h, nil, four, 4, nil)}, plain)
	f("array of 30", list{append(stored(h, nil, four, 4, nil, "gPu", nil, nil, 0, "full_attention", nil),
		make(list, 18)...)}, plain)
	f("negative hashes", list{stored(list{-1}, -2, four, 4)},
		"store gpu [18446744073709551615] parent 18446744073709551614 tokens [1 2 3 4] size 4")
	f("SGLang with EAGLE, whose tokens are pairs", list{stored(h, nil, list{list{1, 2}, list{2, 3}}, 2, nil, "GPU")})
	f("digest of 16 bytes", list{stored(list{[]byte("12345678\x00\x00\x00\x00\x00\x00\x00\x09")}, nil, four, 4)},
		"store gpu [9] parent nil tokens [1 2 3 4] size 4")
	f("old adapter", list{stored(h, nil, four, 4, 3)}, plain+" adapter lora_id=3")
	f("key order and unknown keys", list{pairs{"new", pairs{"deep", list{list{}}}, "block_size", 4, "token_ids", four,
		"block_hashes", h, "session_id", "s", "type", "BlockStored", 5, 6}}, plain+" session s")
	f("unknown tag", list{list{"BlockMoved", h}, pairs{"type", "Nap"}, list{}, 5, nil, stored(h, nil, four, 4)}, plain)
	f("remote", list{pairs{"type", "BlockStored", "block_hashes", h, "token_ids", four, "block_size", 4, "locality", "REMOTE"},
		pairs{"type", "BlockRemoved", "block_hashes", h, "locality", "remote"}})
	f("offloaded", list{stored(h, nil, four, 4), stored(h, nil, list{}, 0, nil, "CPU"), list{"BlockRemoved", h, "cpu"}},
		plain, "store cpu [7] parent nil tokens [] size 0", "remove cpu [7]")
	f("LMCache through vLLM", list{stored(h, nil, four, 4, nil, "cpu")})
	f("other medium", list{stored(h, nil, four, 4, nil, "S3"), list{"BlockRemoved", h, "S3"}})
	f("disk", list{stored(h, nil, four, 4, nil, "Disk")}, "store disk [7] parent nil tokens [1 2 3 4] size 4")
	f("tokens that do not agree", list{stored(h, nil, list{1, 2, 3}, 4), stored(h, nil, four, 0), stored(h, nil, list{}, 0),
		stored(h, nil, list{1, "x", 3, 4}, 4), stored(list{"x"}, nil, four, 4), stored(h, nil, four, "4")})
	f("two groups", list{
		stored(h, nil, four, 4, nil, "GPU", nil, nil, 0, "sliding_window", 128),
		stored(h, nil, four, 4, nil, "GPU", nil, nil, 1, "full_attention"),
		stored(h, nil, four, 4, nil, "GPU", nil, nil, 2, "full_attention"),
		list{"BlockRemoved", h, "GPU", 2}, list{"BlockRemoved", h, "GPU", 0}, list{"BlockRemoved", h, "GPU", 1}},
		plain, "remove gpu [7]")
	ten := func(hashes, parent any, tokens list, group int) list {
		return stored(hashes, parent, tokens, 4, nil, "GPU", nil, nil, group)
	}
	f("a sparse group without a kind comes first", list{ten(h, nil, four, 0), ten(h, nil, four, 1),
		ten(list{9}, nil, list{1, 2, 3, 4, 5, 6, 7, 8}, 0), ten(list{8, 9}, nil, list{1, 2, 3, 4, 5, 6, 7, 8}, 1),
		ten(h, nil, four, 0), list{"BlockRemoved", list{8}, "GPU", 0}, list{"BlockRemoved", list{9}, "GPU", 1}},
		plain, "clear", "store gpu [8 9] parent nil tokens [1 2 3 4 5 6 7 8] size 4", "remove gpu [9]")
	f("a sparse group without a kind comes last", list{ten(h, nil, four, 0), ten(list{9}, nil, list{1, 2, 3, 4, 5, 6, 7, 8}, 1),
		ten(h, 7, four, 0)}, plain, "store gpu [7] parent 7 tokens [1 2 3 4] size 4")
	f("empty removal", list{stored(h, nil, four, 4), list{"BlockRemoved", list{}}}, plain)
}

// A block with an image in it keeps its place, and matches no prompt of text.
func TestImagesAreNoText(t *testing.T) {
	events := list{list{"BlockStored", list{7, 8}, nil, list{1, 2, 3, 4}, 2, nil, "GPU", nil,
		list{nil, list{list{"image", 0}}}}}
	var d Decoder
	var got, again lines
	if _, err := d.Decode(batch(events...), &got); err != nil || len(got) != 1 {
		t.Fatal(err, got)
	}
	if !strings.Contains(got[0], "tokens [1 2 ") || d.stored.Tokens[2]>>31 == 0 || d.stored.Tokens[3]>>31 == 0 {
		t.Errorf("%q; want the second block's tokens beyond every vocabulary", got)
	}
	if _, _ = d.Decode(batch(events...), &again); !slices.Equal(got, again) {
		t.Error("the same image has two names")
	}
}

// What cannot be read of a removal makes the view doubtful, and so does a payload that breaks off.
func TestLost(t *testing.T) {
	f := func(name string, payload []byte, want bool, wantErr error) {
		t.Helper()
		var d Decoder
		var got lines
		b, err := d.Decode(payload, &got)
		if b.Lost != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: lost %t, %v; want %t, %v", name, b.Lost, err, want, wantErr)
		}
	}
	many := make(list, maxBlocks+1)
	for i := range many {
		many[i] = 1
	}
	f("a removal of no hash", batch(list{"BlockRemoved", list{"x"}}), true, nil)
	f("a removal of a number", batch(list{"BlockRemoved", 5}), true, nil)
	f("a removal of too many", batch(list{"BlockRemoved", many}), true, nil)
	f("a store of too many", batch(list{"BlockStored", many, nil, list{}, 4}), false, nil)
	f("map form", pack(pairs{"ts", 1.5, "events", list{}, "more", nil, 7, 8}), false, nil)
	f("nothing", nil, false, errShort)
	f("text", []byte("GET / HTTP/1.1"), false, errShape)
	f("one element", pack(list{1.5}), false, errShape)
	whole := unhex(t, vectors[3].hex)
	for i := 1; i < len(whole); i++ {
		f(fmt.Sprintf("cut at %d", i), whole[:i], false, errShort)
	}
}

// A payload announces lengths and depths that it does not have: neither memory nor time follows.
func TestBombs(t *testing.T) {
	head := []byte{0x93, 0x01}
	bombs := map[string][]byte{
		"4G events":          append(slices.Clone(head), mpArray32, 0xff, 0xff, 0xff, 0xff),
		"4G hashes":          append(append(slices.Clone(head), 0x91, 0x92), append(pack("BlockStored"), mpArray32, 0xff, 0xff, 0xff, 0xff)...),
		"deep":               append(slices.Clone(head), slices.Repeat([]byte{0x91}, 1<<20)...),
		"deep and wide":      append(slices.Clone(head), slices.Repeat([]byte{mpArray32, 0, 0x0f, 0, 0}, 1<<18)...),
		"deep maps":          append(slices.Clone(head), slices.Repeat([]byte{0x81}, 1<<20)...),
		"4G of bytes":        append(slices.Clone(head), 0x91, mpBin8+2, 0xff, 0xff, 0xff, 0xff),
		"4G of ext":          append(slices.Clone(head), 0x91, mpExt8+2, 0xff, 0xff, 0xff, 0xff, 1),
		"10M blocks":         batchOf10M("BlockStored"),
		"10M blocks removed": batchOf10M("BlockRemoved"),
	}
	for name, b := range bombs {
		var d Decoder
		var got lines
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = d.Decode(b, &got)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: decoding took %d bytes", name, n)
		}
		if len(got) > 0 {
			t.Errorf("%s: %d events were handed on", name, len(got))
		}
	}
}

func batchOf10M(tag string) []byte {
	b := append([]byte{0x93, 0x01, 0x91, 0x92}, pack(tag)...)
	b = append(b, mpArray32, 0, 0x98, 0x96, 0x80)
	b = append(b, slices.Repeat([]byte{7}, 10_000_000)...)
	return append(b, 0)
}

// What an unusual event has made large is given back.
func TestScratchIsGivenBack(t *testing.T) {
	var d Decoder
	var got lines
	many := make(list, keepWords+1)
	for i := range many {
		many[i] = 1
	}
	for _, hashes := range []list{many, {1}} {
		if _, err := d.Decode(batch(list{"BlockStored", hashes, nil, hashes, 1}), &got); err != nil || len(got) == 0 {
			t.Fatal(err)
		}
	}
	if cap(d.e.hashes) > keepWords || cap(d.e.tokens) > keepWords {
		t.Errorf("%d and %d words are kept", cap(d.e.hashes), cap(d.e.tokens))
	}
}

// checked is a Sink that fails where an event breaks what Stored promises.
type checked struct{ t *testing.T }

func (c checked) Store(s *blocks.Stored) {
	if len(s.Hashes) == 0 || len(s.Hashes) > maxBlocks || s.Medium == blocks.Other ||
		len(s.Tokens) != 0 && len(s.Tokens) != len(s.Hashes)*s.BlockSize {
		c.t.Fatalf("%d hashes of %d, %d tokens on %s", len(s.Hashes), s.BlockSize, len(s.Tokens), s.Medium)
	}
}

func (c checked) Remove(_ blocks.Medium, hashes []uint64) {
	if len(hashes) == 0 || len(hashes) > maxBlocks {
		c.t.Fatalf("%d hashes", len(hashes))
	}
}

func (checked) Clear() {}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		f.Add(unhex(f, v.hex))
	}
	for _, version := range versions {
		for _, m := range recordedEvents(f, version) {
			f.Add(m.payload)
		}
	}
	f.Add([]byte{0x93, 0x01, mpArray32, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		var d Decoder
		for range 2 {
			_, _ = d.Decode(in, checked{t})
		}
	})
}
