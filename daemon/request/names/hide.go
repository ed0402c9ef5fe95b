package names

import "strings"

// Hide returns a text with the name in place of each model's. It is for texts of a worker in which no place is set for
// a model, as errors and header fields. A name that only begins or ends like the model's stays.
func Hide[T string | []byte](text T, model, name string) T {
	if model == "" || model == name {
		return text
	}
	s, at := string(text), 0
	var out strings.Builder
	for from := 0; ; {
		i := strings.Index(s[from:], model)
		if i < 0 {
			break
		}
		lo := from + i
		from = lo + len(model)
		if beginsName(s, lo) && endsName(s, from) {
			out.WriteString(s[at:lo])
			out.WriteString(name)
			at = from
		}
	}
	if at == 0 {
		return text
	}
	out.WriteString(s[at:])
	return T(out.String())
}

// beginsName reports whether a name may begin at i. The letter before it may be that of an escape.
func beginsName(s string, i int) bool {
	return i == 0 || !inName(s[i-1]) && s[i-1] != '.' || i > 1 && s[i-2] == '\\'
}

// endsName reports whether a name may end before i. A full stop may end a sentence.
func endsName(s string, i int) bool {
	return i == len(s) || !inName(s[i]) && (s[i] != '.' || i+1 == len(s) || !inName(s[i+1]))
}

// inName reports whether a name goes on with the byte.
func inName(c byte) bool {
	return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '_' || c >= 0x80
}
