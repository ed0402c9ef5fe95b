package conf

import (
	"fmt"
	"strings"
)

// bounds is what a document of TOML may ask for before it is parsed. The library spends memory on each level of
// nesting for each key in it, and so does the search for lines after it: 400 KB of "[" took 4 GB.
type bounds struct {
	depth  int // levels of tables, lists and parts of keys in one another
	path   int // bytes of a key with those of the tables around it, as written
	values int // parts of keys, and items of lists, in all
}

// inForce are the bounds of every file that is read: ten times what a configuration of 10,000 workers has.
var inForce = bounds{depth: 64, path: 256, values: 500_000}

// exceeded returns the line at which the document first exceeds the bounds, and how; 0 = it keeps them, up to the first
// place at which it is no TOML, where the library stops too.
//
// It knows strings, comments and brackets, and no more of the grammar: in what is TOML up to here a quote opens a
// string, a bracket a table or list, and a dot before the equals sign parts a key. It is fuzzed against the library.
func (b bounds) exceeded(doc string) (line int, what string) {
	s := &bounder{bounds: b, s: doc, line: 1}
	for s.i < len(doc) && s.what == "" && !s.lost {
		s.step()
	}
	if s.what == "" {
		return 0, ""
	}
	return s.line, s.what
}

// level is how deep and how long the names are around a place.
type level struct{ depth, path int }

// bounder is a cursor over the document.
type bounder struct {
	bounds
	s    string
	i    int
	line int

	table  level   // of the header above
	around []level // the levels outside of each open bracket of a value
	here   level   // within the innermost of them
	header int     // brackets of a table's header that are open: 0, 1, 2

	assigned bool // the equals sign of the pair has passed
	dots     int  // in the key, before the equals sign
	key      int  // bytes of it

	values int
	what   string // what is exceeded
	lost   bool   // this is no TOML
}

func (b *bounder) step() {
	switch c := b.s[b.i]; c {
	case '\n':
		b.line++
		if len(b.around) == 0 {
			b.here = b.table
			b.next()
		}
	case '#':
		if end := strings.IndexByte(b.s[b.i:], '\n'); end >= 0 {
			b.i += end
		} else {
			b.i = len(b.s)
		}
		return
	case '"', '\'':
		b.text(c)
		return
	case '[':
		b.open(true)
	case '{':
		b.open(false)
	case ']', '}':
		b.shut()
	case '=':
		if !b.assigned {
			b.assigned = true
			b.enter(b.dots+1, b.key)
		}
	case ',':
		b.count(1)
		if n := len(b.around); n > 0 {
			b.here = b.inner()
		}
		b.next()
	case ' ', '\t', '\r':
	default:
		if !b.assigned {
			b.key++
			if c == '.' {
				b.dots++
				if b.dots >= b.depth {
					b.deep()
				}
			}
			if b.key > b.path {
				b.long()
			}
		}
	}
	b.i++
}

// next begins a pair or an item.
func (b *bounder) next() {
	b.assigned = false
	b.dots = 0
	b.key = 0
}

// inner is the level within the innermost open bracket, where its next item begins.
func (b *bounder) inner() level { return b.around[len(b.around)-1] }

// enter goes so many levels and bytes deeper.
func (b *bounder) enter(levels, bytes int) {
	b.here.depth += levels
	b.here.path += bytes
	b.count(levels)
	if b.here.depth > b.depth {
		b.deep()
	}
	if b.here.path > b.path {
		b.long()
	}
}

func (b *bounder) count(n int) {
	b.values += n
	if b.values > b.bounds.values {
		b.what = fmt.Sprintf("there are more than %d keys and items", b.bounds.values)
	}
}

func (b *bounder) deep() {
	b.what = fmt.Sprintf("tables, lists and the parts of keys stand more than %d deep in one another", b.depth)
}

func (b *bounder) long() {
	b.what = fmt.Sprintf("a key is longer than %d bytes with the tables around it", b.path)
}

// open enters a table's header, a list or an inline table.
func (b *bounder) open(list bool) {
	if list && len(b.around) == 0 && !b.assigned {
		b.header++
		if b.header > 2 {
			b.lost = true
		}
		b.here = level{}
		b.next()
		return
	}
	if list {
		b.enter(1, len("[0]"))
	}
	b.around = append(b.around, b.here)
	if len(b.around) > 2*b.depth+2 { // tables in one another without a key between
		b.lost = true
	}
	b.next()
}

// shut leaves it.
func (b *bounder) shut() {
	switch n := len(b.around); {
	case n > 0:
		b.around = b.around[:n-1]
		b.here = level{}
		if n > 1 {
			b.here = b.inner()
		}
		b.assigned = true // the value has ended; what may come is a comma, a bracket or the end of the line
	case b.header == 0:
		b.lost = true
	default:
		b.header--
		if b.header == 0 {
			b.here = level{}
			b.enter(b.dots+1, b.key)
			b.table = b.here
			b.assigned = true
		}
	}
}

// text skips a string.
func (b *bounder) text(quote byte) {
	start := b.i
	long := strings.HasPrefix(b.s[b.i:], strings.Repeat(string(quote), 3))
	b.i++
	if long {
		b.i += 2
	}
	for b.i < len(b.s) && !b.ends(quote, long) {
		switch b.s[b.i] {
		case '\\':
			if quote == '"' {
				b.i++
				if b.i < len(b.s) && b.s[b.i] == '\n' {
					b.line++
				}
			}
		case '\n':
			if !long {
				b.lost = true
				return
			}
			b.line++
		}
		b.i++
	}
	if !b.assigned {
		b.key += b.i - start
		if b.key > b.path && !long {
			b.long()
		}
	}
}

// ends steps over the end of a string, if it is here. A long one may end with two quotes of its own.
func (b *bounder) ends(quote byte, long bool) bool {
	if b.s[b.i] != quote {
		return false
	}
	if !long {
		b.i++
		return true
	}
	n := 0
	for b.i+n < len(b.s) && b.s[b.i+n] == quote && n < 5 {
		n++
	}
	if n < 3 {
		return false
	}
	b.i += n
	return true
}
