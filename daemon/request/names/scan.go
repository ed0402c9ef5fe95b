package names

// maxKey is the longest key that a scanner tells from others.
const maxKey = len("response")

// scanner walks through JSON byte by byte and finds the values of "model": that of the outermost object, and in an
// event those of the objects "message" (Anthropic's) and "response" (OpenAI's). A "model" that stands elsewhere is a
// client's or a model's own text.
type scanner struct {
	nested bool // "message" and "response" count

	depth   int
	objects [3]bool // whether each level is an object, from the second on
	within  bool    // the level below the outermost object is one of those that count
	key     [maxKey + 1]byte
	n       int // bytes of key, at most one more than maxKey
	isKey   bool
	text    bool // inside of a string
	escaped bool // the next byte of the string is escaped
	digits  int  // of a \u escape in the string, that are still to come
	code    rune // the digits that have come
	value   bool // what comes next is a value
	found   bool // the string is a model's name
}

// What a byte is to a scanner.
type part uint8

const (
	other part = iota
	opens      // the quote before a model's name
	inside
	closes // the quote behind it
)

// next takes the next byte.
func (s *scanner) next(c byte) part {
	if s.text {
		return s.nextOfText(c)
	}
	switch c {
	case '{', '[':
		s.enter(c == '{')
	case '}', ']':
		s.depth--
		s.value = false
	case ',':
		s.value = false
	case ':':
		s.value = true
	case '"':
		return s.begin()
	}
	return other
}

// enter begins an object or a list.
func (s *scanner) enter(object bool) {
	if s.depth == 1 {
		name := string(s.key[:s.n])
		s.within = s.nested && s.value && (name == "message" || name == "response")
	}
	if s.depth >= 0 && s.depth < len(s.objects)-1 {
		s.objects[s.depth+1] = object
	}
	s.depth++
	s.value = false
}

// counts reports whether the scanner is in an object whose keys count.
func (s *scanner) counts() bool {
	return s.depth == 1 && s.objects[1] || s.depth == 2 && s.objects[2] && s.within
}

// begin begins a string.
func (s *scanner) begin() part {
	s.text, s.digits = true, 0
	if !s.counts() {
		return other
	}
	if !s.value {
		s.isKey, s.n = true, 0
		return other
	}
	s.found = string(s.key[:s.n]) == "model"
	if s.found {
		return opens
	}
	return other
}

// nextOfText takes the next byte of a string. A key may be spelled with escapes.
func (s *scanner) nextOfText(c byte) part {
	switch {
	case s.escaped:
		s.escaped = false
		if c == 'u' {
			s.digits, s.code = 4, 0
		} else {
			s.addToKey(0) // no letter has a short escape
		}
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.text, s.isKey = false, false
		if s.found {
			s.found = false
			return closes
		}
	case s.digits > 0:
		s.digits--
		s.code = s.code<<4 | hexadecimal(c)
		if s.digits == 0 {
			s.addToKey(byte(min(s.code, 0x80)))
		}
	default:
		s.addToKey(c)
	}
	if s.found {
		return inside
	}
	return other
}

// addToKey adds the next character of a string, if that is a key. What is no character of the keys looked for may be
// any other such byte.
func (s *scanner) addToKey(c byte) {
	if s.isKey && s.n <= maxKey {
		s.key[s.n] = c
		s.n++
	}
}

// hexadecimal returns the value of a digit. What is none makes the number no letter.
func hexadecimal(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return 1 << 24
}

// Find returns where the names of models stand in the text of a JSON object or the beginning of one, without quotes.
func Find(text []byte) (spans [][2]int) {
	var s scanner
	lo := 0
	for i, c := range text {
		switch s.next(c) {
		case opens:
			lo = i + 1
		case closes:
			spans = append(spans, [2]int{lo, i})
		}
	}
	return spans
}
