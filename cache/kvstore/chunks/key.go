package chunks

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Key is a parsed key of LMCache.
type Key struct {
	Model string
	Part  string // rank, and layer if there is one: together the parts are a token's KV
	Kind  Kind

	Door byte   // where it was put: 'r' the Redis listener, 'h' the HyperPod listener; 0 = the key has no mark
	Hash string // of the chunk, in hexadecimal digits
	Rank uint32 // kv_rank of a multi-process server; 0 = the key is of no server
	Salt string // cache_salt of such a server
}

// Lost is a part of a chunk that is in no tier any more. LMCache's servers do not learn of it: one asks the store at
// each look-up, and publishes a deletion only when it deletes.
type Lost struct {
	Adapters    []string // by which servers reach the store: the types of their --l2-adapter
	Model, Hash string   // of the chunk; Hash in hexadecimal digits
	Rank        uint32   // kv_rank
	Salt        string   // cache_salt
}

// Kind states what a key's value is.
type Kind int

// The kinds of values.
const (
	Whole    Kind = iota // the bytes, perhaps with the metadata before them
	Metadata             // 28 bytes for the value of a key beside it
	Payload              // the bytes for the metadata of a key beside it
)

const (
	metadataSuffix = "metadata"
	payloadSuffix  = "kv_bytes"
	maxModel       = 256 // bytes of a model's name
	rankDigits     = 8   // of kv_rank in a server's key; no world has ten million workers
)

// ParseKey parses a key. ok is false if LMCache makes no such keys.
func ParseKey(key string) (k Key, ok bool) {
	if rest, ok := strings.CutSuffix(key, metadataSuffix); ok {
		key, k.Kind = rest, Metadata
	} else if rest, ok := strings.CutSuffix(key, payloadSuffix); ok {
		key, k.Kind = rest, Payload
	}
	k.Door, key = cutDoor(key)
	key = strings.TrimPrefix(key, "vllm@")
	var rest, first, second, dtype string
	k.Model, rest, _ = strings.Cut(key, "@")
	first, rest, _ = strings.Cut(rest, "@")
	second, rest, ok = strings.Cut(rest, "@")
	if len(second) == rankDigits && isHex(second) { // the valkey adapter's key_prefix stands before a server's key
		k.Model, first = first, second
		second, rest, ok = strings.Cut(rest, "@")
	}
	if !ok || k.Model == "" || len(k.Model) > maxModel || !isHex(first) || !isHex(second) ||
		!utf8.ValidString(k.Model) { // the model is shown to people
		return Key{}, false
	}
	k.Hash, rest, _ = strings.Cut(rest, "@")
	if !isHex(strings.TrimPrefix(k.Hash, "-")) {
		return Key{}, false
	}
	if len(first) == rankDigits {
		rank, _ := strconv.ParseUint(first, 16, 32)
		k.Part, k.Rank, k.Salt = first+"@"+second, uint32(rank), rest
		return k, true
	}
	dtype, rest, _ = strings.Cut(rest, "@")
	layer, _, _ := strings.Cut(rest, "@")
	k.Part = second
	if dtype != "" && layer != "" && isDecimal(layer) {
		k.Part += "@" + layer
	}
	return k, true
}

// Mate returns the key under which LMCache keeps the other half of a chunk that it splits into metadata and bytes.
// false = the key is of no such chunk.
func Mate(key string) (other string, ok bool) {
	if base, is := strings.CutSuffix(key, metadataSuffix); is {
		other = base + payloadSuffix
	} else if base, is := strings.CutSuffix(key, payloadSuffix); is {
		other = base + metadataSuffix
	} else {
		return "", false
	}
	_, ok = ParseKey(key) // else it is a client's own name that happens to end so
	return other, ok
}

// cutDoor returns the door's mark and the client's own name of the key. The rest before it keeps clients apart.
func cutDoor(key string) (door byte, rest string) {
	switch {
	case len(key) > 2 && key[0] == 'r' && key[1] < ' ': // the Redis listener: then the database
		return key[0], key[2:]
	case len(key) > 2 && key[0] == 'h' && key[1] < ' ': // the HyperPod listener: then the bucket's length, and the bucket
		return key[0], key[min(len(key), 2+int(key[1])):]
	}
	return 0, key
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isHex reports whether s is up to 128 hexadecimal digits, the longest hash.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// shape is the content of metadata.
type shape struct {
	length int64 // bytes of the value
	tokens int64 // 0 = the shape does not show them
}

// The formats of LMCache whose shape contains the tokens.
const (
	kv2LTD = 1 // [2, layers, tokens, hidden]
	kvT2D  = 2 // [tokens, 2, hidden]
	kv2TD  = 3 // [2, tokens, hidden]
	kvMLA  = 6 // [1, layers, tokens, head]
)

// metadataBytes is the size of the metadata of one group of layers: length, format, dtype, four dimensions.
const metadataBytes = 7 * 4

// parseMetadata parses the metadata of one group at the start of b. ok is false if b does not start with metadata.
func parseMetadata(b []byte) (s shape, ok bool) {
	if len(b) < metadataBytes {
		return s, false
	}
	number := func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(b[4*i:]))) }
	length, format, dtype := number(0), number(1), number(2)
	d := [4]int64{number(3), number(4), number(5), number(6)}
	if length <= 0 || format < 0 || format > kvMLA || dtype < 0 || dtype > 64 || min(d[0], d[1], d[2], d[3]) < 0 {
		return s, false
	}
	s.length = length
	switch {
	case format == kv2LTD || format == kvMLA:
		s.tokens = d[2]
	case (format == kvT2D || format == kv2TD) && d[0] == 2:
		s.tokens = d[1]
	case format == kvT2D || format == kv2TD:
		s.tokens = d[0]
	}
	if s.tokens > length { // a token has at least one byte
		return s, false
	}
	return s, true
}
