package wasmtest

import (
	"fmt"
	"strconv"
	"strings"
)

// node is an atom (list == nil) or a list of the text format.
type node struct {
	atom string
	list []node
	isL  bool
}

func (n node) head() string {
	if n.isL && len(n.list) > 0 {
		return n.list[0].atom
	}
	return ""
}

// parse reads one s-expression of src from i on.
func parse(src string, i int) (node, int, error) {
	i = skip(src, i)
	if i >= len(src) {
		return node{}, i, fmt.Errorf("wasmtest: source ends inside a list; close it")
	}
	switch src[i] {
	case '(':
		n := node{isL: true}
		for i = skip(src, i+1); i < len(src) && src[i] != ')'; i = skip(src, i) {
			var k node
			var err error
			k, i, err = parse(src, i)
			if err != nil {
				return node{}, i, err
			}
			n.list = append(n.list, k)
		}
		if i >= len(src) {
			return node{}, i, fmt.Errorf("wasmtest: source ends inside a list; close it")
		}
		return n, i + 1, nil
	case '"':
		end := i + 1
		for end < len(src) && src[end] != '"' {
			if src[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(src) {
			return node{}, i, fmt.Errorf("wasmtest: source ends inside a string; close it")
		}
		return node{atom: src[i : end+1]}, end + 1, nil
	}
	end := i
	for end < len(src) && !strings.ContainsRune(" \t\r\n();\"", rune(src[end])) {
		end++
	}
	if end == i {
		return node{}, i, fmt.Errorf("wasmtest: %q opens no atom", src[i])
	}
	return node{atom: src[i:end]}, end, nil
}

// skip passes white space, ;; line comments and (; block comments ;).
func skip(src string, i int) int {
	for i < len(src) {
		switch {
		case strings.IndexByte(" \t\r\n", src[i]) >= 0:
			i++
		case strings.HasPrefix(src[i:], ";;"):
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case strings.HasPrefix(src[i:], "(;"):
			end := strings.Index(src[i:], ";)")
			if end < 0 {
				return len(src)
			}
			i += end + 2
		default:
			return i
		}
	}
	return i
}

// text decodes a quoted string with the escapes \n \t \" \\ and \hh.
func text(atom string) []byte {
	var b []byte
	s := strings.TrimSuffix(strings.TrimPrefix(atom, `"`), `"`)
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		default:
			if i+2 <= len(s) {
				if v, err := strconv.ParseUint(s[i:min(i+2, len(s))], 16, 8); err == nil {
					b = append(b, byte(v))
					i++
					continue
				}
			}
			b = append(b, s[i])
		}
	}
	return b
}

func number(s string) (int64, error) {
	s = strings.ReplaceAll(s, "_", "")
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return int64(v), err
}
