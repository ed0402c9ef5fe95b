package conf

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// child and elem build paths: server.listen, pools[0], strategies."odd name".
func child(path, key string) string {
	key = toml.Key{key}.String()
	if path == "" {
		return key
	}
	return path + "." + key
}

func elem(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parent drops the last key or index of a path. A quoted key with a dot or bracket in it only costs precision: a
// shorter path is found instead.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// bounds is what a document of TOML may ask for before it is parsed. The library spends memory on each level of
// nesting for each key in it: 400 KB of "[" took 4 GB.
type bounds struct {
	depth  int // levels of tables, lists and parts of keys in one another
	path   int // bytes of a key with those of the tables around it
	values int // parts of keys, and items of lists, in all
}

// inForce are the bounds of every file that is read: ten times what a configuration of 10,000 workers has.
var inForce = bounds{depth: 64, path: 256, values: 500_000}

// locate finds the line of each key of a document, or the one at which the document first exceeds the bounds. The lines
// are right in a document that the TOML library accepts. In any other, what comes before the first place that is no
// TOML keeps the bounds if none is exceeded; the library stops there too.
func (b bounds) locate(doc string) *locator {
	l := &locator{bounds: b, s: doc, line: 1, lines: make(map[string]int), tables: make(map[string]int)}
	table, depth := "", 0
	for l.blank(); l.i < len(l.s); l.blank() {
		if l.s[l.i] == '[' {
			table, depth = l.header()
		} else {
			l.pair(table, depth)
		}
	}
	return l
}

// locator is a cursor over the document.
type locator struct {
	bounds
	s      string
	i      int
	line   int
	lines  map[string]int // path -> line, the first mention
	tables map[string]int // path of an array of tables -> its length so far

	counted int    // values so far
	what    string // what is exceeded, "" = nothing is
	over    int    // the line
}

// enter counts values, the innermost of which is so deep in the document.
func (l *locator) enter(depth, values int) {
	l.counted += values
	if depth > l.depth {
		l.stop("tables, lists and the parts of keys stand more than %d deep in one another", l.depth)
	}
	if l.counted > l.values {
		l.stop("there are more than %d keys and items", l.values)
	}
}

// stop ends the search at a bound that is exceeded.
func (l *locator) stop(what string, bound int) {
	if l.what == "" {
		l.what = fmt.Sprintf(what, bound)
		l.over = l.line
	}
	l.i = len(l.s)
}

// next steps over one byte and counts lines.
func (l *locator) next() {
	if l.i < len(l.s) && l.s[l.i] == '\n' {
		l.line++
	}
	l.i++
}

func (l *locator) skip(n int) {
	for range n {
		l.next()
	}
}

func (l *locator) at(prefix string) bool {
	return l.i < len(l.s) && strings.HasPrefix(l.s[l.i:], prefix)
}

// spaces skips blanks within a line, blank also newlines and comments.
func (l *locator) spaces() {
	for l.at(" ") || l.at("\t") {
		l.i++
	}
}

func (l *locator) blank() {
	for l.i < len(l.s) && strings.IndexByte(" \t\r\n#", l.s[l.i]) >= 0 {
		if l.s[l.i] == '#' {
			l.until("\n")
		} else {
			l.next()
		}
	}
}

// until moves to the next byte of set, or to the end.
func (l *locator) until(set string) {
	for l.i < len(l.s) && strings.IndexByte(set, l.s[l.i]) < 0 {
		l.next()
	}
}

// note keeps the first mention of a path.
func (l *locator) note(path string) string {
	if len(path) > l.path {
		l.stop("a key is longer than %d bytes with the tables around it", l.path)
	}
	if l.lines[path] == 0 {
		l.lines[path] = l.line
	}
	return path
}

// header reads [a.b] or [[a.b]] and returns the path of the table it opens, and how deep that is.
func (l *locator) header() (path string, depth int) {
	l.next()
	array := l.at("[")
	if array {
		l.next()
	}
	keys := l.keys(0)
	for i, k := range keys {
		path = l.note(child(path, k))
		if array && i == len(keys)-1 {
			l.tables[path]++
		}
		if n := l.tables[path]; n > 0 {
			path = l.note(elem(path, n-1))
		}
	}
	l.until("\n")
	return path, len(keys)
}

// pair reads key = value in a table that is so deep.
func (l *locator) pair(table string, depth int) {
	start := l.i
	path := table
	keys := l.keys(depth)
	for _, k := range keys {
		path = l.note(child(path, k))
	}
	if l.at("=") {
		l.next()
	}
	l.value(path, depth+len(keys))
	if l.i == start { // no progress: not TOML
		l.next()
	}
}

// keys reads a dotted key up to = or ], in a table that is so deep.
func (l *locator) keys(depth int) []string {
	var keys []string
	for {
		l.spaces()
		keys = append(keys, l.key())
		l.enter(depth+len(keys), 1)
		l.spaces()
		if !l.at(".") {
			return keys
		}
		l.next()
	}
}

func (l *locator) key() string {
	start := l.i
	switch {
	case l.at(`"`):
		l.quoted(`"`)
		if s, err := strconv.Unquote(l.s[start:min(l.i, len(l.s))]); err == nil {
			return s
		}
		return l.s[start:min(l.i, len(l.s))]
	case l.at("'"):
		l.quoted("'")
		return strings.Trim(l.s[start:min(l.i, len(l.s))], "'")
	}
	l.until(" \t\r\n.=]")
	return l.s[start:l.i]
}

// value skips a value, of a key that is so deep, and notes the keys within it.
func (l *locator) value(path string, depth int) {
	l.spaces()
	switch {
	case l.at(`"""`):
		l.quoted(`"""`)
	case l.at("'''"):
		l.quoted("'''")
	case l.at(`"`):
		l.quoted(`"`)
	case l.at("'"):
		l.quoted("'")
	case l.at("["):
		l.enter(depth+1, 0)
		l.list("]", func(i int) {
			l.enter(depth+1, 1)
			l.value(l.note(elem(path, i)), depth+1)
		})
	case l.at("{"):
		l.list("}", func(int) { l.pair(path, depth) })
	default:
		l.until(",]}#\r\n")
	}
}

// list reads the items of an array or inline table, from its opening to its closing byte.
func (l *locator) list(end string, item func(int)) {
	l.next()
	for i := 0; ; i++ {
		l.blank()
		if l.i >= len(l.s) || l.at(end) {
			break
		}
		start := l.i
		item(i)
		l.blank()
		if l.at(",") {
			l.next()
		}
		if l.i == start { // no progress: not TOML
			return
		}
	}
	l.next()
}

// quoted skips a string with its delimiters. A multi-line string may end with up to two quotes of its own.
func (l *locator) quoted(delim string) {
	l.skip(len(delim))
	for l.i < len(l.s) && !l.at(delim) {
		if delim[0] == '"' && l.at(`\`) {
			l.next()
		}
		l.next()
	}
	l.skip(len(delim))
	for n := 0; len(delim) == 3 && n < 2 && l.at(delim[:1]); n++ {
		l.next()
	}
}
