package jsonline

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Line is JSON that is being appended to. Names of fields are the program's own, and go out as they are.
type Line []byte

// Open begins an object, as a field or, with no name, as an element of a list or the whole line.
func (l *Line) Open(name string) { l.begin(name, '{') }

// Close ends the object.
func (l *Line) Close() { *l = append(*l, '}') }

// OpenList begins a list.
func (l *Line) OpenList(name string) { l.begin(name, '[') }

// CloseList ends the list.
func (l *Line) CloseList() { *l = append(*l, ']') }

func (l *Line) begin(name string, with byte) {
	if name != "" {
		*l = append(l.key(name), with)
	} else {
		*l = append(l.comma(), with)
	}
}

// comma returns the line, and adds a comma if a value stands before.
func (l *Line) comma() []byte {
	b := *l
	if n := len(b); n > 0 && b[n-1] != '{' && b[n-1] != '[' {
		return append(b, ',')
	}
	return b
}

// key returns the line with a field's name: it is stored once, with the value.
func (l *Line) key(name string) []byte {
	return append(append(append(l.comma(), '"'), name...), '"', ':')
}

// Text appends a text.
func (l *Line) Text(name, v string) {
	b := l.key(name)
	for i := range len(v) {
		if c := v[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			*l = append(b, rare(v)...)
			return
		}
	}
	*l = append(append(append(b, '"'), v...), '"')
}

// rare is a text that is not plain ASCII.
func rare(v string) []byte {
	text, err := json.Marshal(v)
	if err != nil { // there is no text that JSON does not have
		text = []byte(`""`)
	}
	return text
}

// Base64 appends bytes as JSON has them.
func (l *Line) Base64(name string, v []byte) {
	*l = append(base64.StdEncoding.AppendEncode(append(l.key(name), '"'), v), '"')
}

// JSON appends what is JSON already.
func (l *Line) JSON(name string, v []byte) {
	*l = append(l.key(name), v...)
}

// Int appends a number.
func (l *Line) Int(name string, v int64) {
	*l = strconv.AppendInt(l.key(name), v, 10)
}

// Bool appends true or false.
func (l *Line) Bool(name string, v bool) {
	*l = strconv.AppendBool(l.key(name), v)
}

// Time appends a time as package slog does.
func (l *Line) Time(name string, v time.Time) {
	*l = append(v.AppendFormat(append(l.key(name), '"'), time.RFC3339Nano), '"')
}

// Number appends a number, rounded to a millionth: no reader needs more, and all digits of a double take three times as
// long. What is no number, as JSON has none, is 0.
func (l *Line) Number(name string, v float64) {
	b := l.key(name)
	const most = 1e12 // millionths of it are a whole number that a double holds nearly to the last digit
	if !(math.Abs(v) < most) {
		*l = appendLarge(b, v)
		return
	}
	millionths := int64(math.Round(v * 1e6))
	if millionths < 0 {
		b = append(b, '-')
		millionths = -millionths
	}
	if whole := millionths / 1e6; whole < 10 {
		b = append(b, byte('0'+whole))
	} else {
		b = strconv.AppendInt(b, whole, 10)
	}
	if rest := uint32(millionths % 1e6); rest > 0 {
		first, second, third := 2*(rest/10_000), 2*(rest/100%100), 2*(rest%100)
		b = append(b, '.', pairs[first], pairs[first+1], pairs[second], pairs[second+1], pairs[third], pairs[third+1])
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	*l = b
}

// pairs are the digits of 0 to 99.
const pairs = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849" +
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// appendLarge appends a number beyond what Number rounds.
func appendLarge(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}
