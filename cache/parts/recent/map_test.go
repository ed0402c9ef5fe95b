package recent

import (
	"strings"
	"testing"
)

// TestMap: each letter is written in turn into a map of two to four keys.
func TestMap(t *testing.T) {
	for _, c := range []struct{ what, written, kept string }{
		{"nothing", "", ""},
		{"one half", "ab", "ab"},
		{"both halves", "abcd", "abcd"},
		{"the older half goes", "abcde", "cde"},
		{"what is written again stays", "abcade", "acde"},
		{"a key that is there takes no room", "abbbbaa", "ab"},
		{"nor does one of a full half turn it over", "abcdcdcd", "abcd"},
	} {
		m := New[rune, int](2)
		for i, key := range c.written {
			m.Put(key, i)
			if m.Len() > 4 {
				t.Fatalf("%s: %d values", c.what, m.Len())
			}
		}
		for _, key := range "abcde" {
			got, ok := m.Get(key)
			if want := strings.LastIndex(c.written, string(key)); ok != strings.ContainsRune(c.kept, key) || ok && got != want {
				t.Errorf("%s: %c is %d, %v", c.what, key, got, ok)
			}
		}
	}
}

func TestDelete(t *testing.T) {
	m := New[string, int](1)
	m.Put("a", 1)
	m.Put("b", 2)
	m.Put("a", 3) // and the older half has b
	if !m.Delete("a") || m.Delete("a") || !m.Delete("b") || m.Len() != 0 {
		t.Errorf("%d are left", m.Len())
	}
	m.Put("a", 1)
	m.Put("b", 2)
	m.Put("b", 3)
	m.Delete("b")
	if v, ok := m.Get("b"); ok {
		t.Errorf("b came back as %d", v)
	}
}
