package abi

// Options reach wp_configure as pairs sorted by key; each key and each value is a u32 length and its bytes. A module
// without options is configured with length 0. Worked value, {"a": "1"}: 01 00 00 00 61 01 00 00 00 31.

// MaxOptions bounds the encoded options, in bytes.
const MaxOptions = 64 << 10

// AppendOption appends one pair to b. The caller appends in sorted order.
func AppendOption(b []byte, key, value string) []byte {
	return AppendText(AppendText(b, key), value)
}

// AppendText appends one text: a u32 length and its bytes.
func AppendText(b []byte, s string) []byte {
	n := uint32(len(s))
	b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return append(b, s...)
}

// NextOption cuts the first pair from b. ok is false at the end and on bytes that are no pair.
func NextOption(b []byte) (key, value string, rest []byte, ok bool) {
	key, b, ok = NextText(b)
	if !ok {
		return "", "", nil, false
	}
	value, b, ok = NextText(b)
	return key, value, b, ok
}

// NextText cuts the first text from b. ok is false at the end and on bytes that are none.
func NextText(b []byte) (text string, rest []byte, ok bool) {
	if len(b) < 4 {
		return "", nil, false
	}
	n := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
	if n > uint64(len(b)-4) {
		return "", nil, false
	}
	return string(b[4 : 4+n]), b[4+n:], true
}
