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
		l.key(name)
	} else {
		l.comma()
	}
	*l = append(*l, with)
}

// comma separates from what stands before.
func (l *Line) comma() {
	if n := len(*l); n > 0 && (*l)[n-1] != '{' && (*l)[n-1] != '[' {
		*l = append(*l, ',')
	}
}

func (l *Line) key(name string) {
	l.comma()
	*l = append(append(append(*l, '"'), name...), '"', ':')
}

// Text appends a text.
func (l *Line) Text(name, v string) {
	l.key(name)
	for i := range len(v) {
		if c := v[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			l.rare(v)
			return
		}
	}
	*l = append(append(append(*l, '"'), v...), '"')
}

// rare appends a text that is not plain ASCII.
func (l *Line) rare(v string) {
	text, err := json.Marshal(v)
	if err != nil { // there is no text that JSON does not have
		text = []byte(`""`)
	}
	*l = append(*l, text...)
}

// Base64 appends bytes as JSON has them.
func (l *Line) Base64(name string, v []byte) {
	l.key(name)
	*l = append(base64.StdEncoding.AppendEncode(append(*l, '"'), v), '"')
}

// Int appends a number.
func (l *Line) Int(name string, v int64) {
	l.key(name)
	*l = strconv.AppendInt(*l, v, 10)
}

// Bool appends true or false.
func (l *Line) Bool(name string, v bool) {
	l.key(name)
	*l = strconv.AppendBool(*l, v)
}

// Time appends a time as package slog does.
func (l *Line) Time(name string, v time.Time) {
	l.key(name)
	*l = append(v.AppendFormat(append(*l, '"'), time.RFC3339Nano), '"')
}

// Number appends a number, rounded to a millionth: nobody reads more, and all digits of a double take three times as
// long. What is no number, as JSON has none, is 0.
func (l *Line) Number(name string, v float64) {
	l.key(name)
	const most = 1e12 // millionths of it are a whole number that a double holds nearly to the last digit
	if !(math.Abs(v) < most) {
		l.large(v)
		return
	}
	millionths := int64(math.Round(v * 1e6))
	if millionths < 0 {
		*l = append(*l, '-')
		millionths = -millionths
	}
	if whole := millionths / 1e6; whole < 10 {
		*l = append(*l, byte('0'+whole))
	} else {
		*l = strconv.AppendInt(*l, whole, 10)
	}
	rest := uint32(millionths % 1e6)
	if rest == 0 {
		return
	}
	first, second, third := 2*(rest/10_000), 2*(rest/100%100), 2*(rest%100)
	text := append(*l, '.', pairs[first], pairs[first+1], pairs[second], pairs[second+1], pairs[third], pairs[third+1])
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	*l = text
}

// pairs are the digits of 0 to 99.
const pairs = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849" +
	"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// large appends a number beyond what Number rounds.
func (l *Line) large(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	*l = strconv.AppendFloat(*l, v, 'f', -1, 64)
}
