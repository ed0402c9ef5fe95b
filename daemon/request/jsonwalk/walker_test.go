package jsonwalk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

var texts = []string{
	`{"a":"x\"y\\","b":{"c":-1.5e3,"d":[1,2, 3,{"e":null}]},"f":[],"g":{}, "h" : true}`,
	`{"\u0061b":"1","a\u005f":"2","\n":"3","\u00e9":"4","` + strings.Repeat("k", 99) + `":"5"}`,
	`{"a":[["b",{"c":"d"}],"e",[{"f":[{"g":[{"h":"i"}]}]}]],"j":"k"}`,
	"\t{\n\"a\"\r\n:\n\"b\" , \"c\" : 1}\n", `["a",{"b":"c"}]`, `"a"`, `12`, `[]`,
}

// walked walks through a text that comes in pieces of a size, and returns its tokens and the strings that are the value
// of a field of an object in objects, by their paths.
func walked(text []byte, size int) (tokens string, fields []string) {
	var w Walker
	var b strings.Builder
	value, last := "", Space
	for len(text) > 0 {
		t, n := w.Next(text[:min(size, len(text))])
		if t == Rest {
			t = Literal
		}
		if t != last || t == Open || t == Close || t == Quote {
			fmt.Fprintf(&b, "|%d ", t)
		}
		b.Write(text[:n])
		last = t
		switch {
		case t == Quote && !w.InText():
			if path := pathOf(&w); w.At(path...) {
				fields = append(fields, strings.Join(path, ".")+"="+value)
			}
			value = ""
		case t == Text || t == Escape:
			value += string(text[:n])
		}
		text = text[n:]
	}
	return b.String(), fields
}

func pathOf(w *Walker) (path []string) {
	for i := 1; i <= min(w.Depth(), levels); i++ {
		path = append(path, string(w.Key(i)))
	}
	return path
}

// strings are the same as encoding/json sees them.
func stringsIn(d *json.Decoder, raw func() string, path []string, in bool, found *[]string) {
	t, err := d.Token()
	if err != nil {
		return
	}
	switch t {
	case json.Delim('{'):
		for d.More() {
			name, _ := d.Token()
			stringsIn(d, raw, append(path[:len(path):len(path)], name.(string)), true, found)
		}
		_, _ = d.Token()
	case json.Delim('['):
		for d.More() {
			stringsIn(d, raw, append(path[:len(path):len(path)], ""), false, found)
		}
		_, _ = d.Token()
	default:
		if _, is := t.(string); is && in && len(path) <= levels {
			*found = append(*found, strings.Join(path, ".")+"="+raw())
		}
	}
}

func check(t *testing.T, text []byte) {
	t.Helper()
	tokens, fields := walked(text, len(text))
	for _, size := range []int{1, 2, 3, 7} {
		if got, gotFields := walked(text, size); !reflect.DeepEqual(gotFields, fields) || got != tokens {
			t.Fatalf("%q in pieces of %d:\n%s\n%s", text, size, got, tokens)
		}
	}
	if !json.Valid(text) || bytes.Contains(text, []byte(`\u`)) && !bytes.Contains(text, []byte(`\u00`)) {
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var want []string
	stringsIn(d, func() string {
		end := int(d.InputOffset()) - 1
		at := end
		for at--; text[at] != '"' || backslashes(text[:at])%2 == 1; at-- {
		}
		return string(text[at+1 : end])
	}, nil, false, &want)
	if plain(fields) != plain(want) {
		t.Fatalf("%q has the fields %q; want %q", text, fields, want)
	}
}

func backslashes(b []byte) int { return len(b) - len(bytes.TrimRight(b, `\`)) }

// plain leaves out what has a key that no walker tells from others.
func plain(fields []string) string {
	var b strings.Builder
	for _, f := range fields {
		path, _, _ := strings.Cut(f, "=")
		odd := func(c rune) bool { return c < ' ' || c > '~' || c == '\\' || c == '"' || c == '/' }
		if !strings.ContainsFunc(path, odd) && len(path) <= int(maxKey) {
			b.WriteString(f + "\n")
		}
	}
	return b.String()
}

// TestWalker: the fields are those that encoding/json finds, and it does not matter how a text is cut.
func TestWalker(t *testing.T) {
	for _, text := range texts {
		check(t, []byte(text))
	}
	_, got := walked([]byte(texts[1]), 4)
	if want := "ab=1 a_=2"; !strings.HasPrefix(strings.Join(got, " "), want) {
		t.Errorf("%q; want %q", got, want)
	}
}

func FuzzWalker(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, text := range []string{`}{"a":"b"`, `{"a":"b" "c"}`, `{"a"::"b"}`, `{,:"\`, `{"a\u00`, "{\"a\n\":\"b\n\"}", `[1"a"{`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text) })
}
