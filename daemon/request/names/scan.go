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
	s.text = true
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

// nextOfText takes the next byte of a string.
func (s *scanner) nextOfText(c byte) part {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.text, s.isKey = false, false
		if s.found {
			s.found = false
			return closes
		}
		return other
	}
	if s.isKey && s.n <= maxKey {
		s.key[s.n] = c
		s.n++
	}
	if s.found {
		return inside
	}
	return other
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
