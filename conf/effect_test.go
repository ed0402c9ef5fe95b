package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file holds a configuration that is not wrong and hardly meant, and all that is noted of it.
func TestNoted(t *testing.T) {
	t.Setenv("WARMPATH_TEST_KEY", "sk-0123456789")
	golden(t, "noted", 30, func(data []byte) error {
		c, err := Parse(data, "x.toml")
		if err != nil {
			t.Fatal(err)
		}
		return Problems(Notes(c))
	})
}

// TestEffects: the table has keys that there are, and words that there are, and a file in testdata shows each row.
func TestEffects(t *testing.T) {
	shown := ""
	files, _ := filepath.Glob("../testdata/conf/noted/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(data), "-- want --\n")
		shown += want
	}
	for _, n := range needs {
		if n.keys == "pools.tls_ca_file" { // TestNotes makes its file
			continue
		}
		what, remedy, _ := strings.Cut(n.say, "; ")
		for _, part := range append(strings.Split(what, "%v"), remedy) {
			if !strings.Contains(shown, part) {
				t.Errorf("no file of testdata/conf/noted shows %q of %s", part, n.keys)
			}
		}
		if n.say != "" && remedy == "" {
			t.Errorf("%s: %q has no remedy", n.keys, n.say)
		}
		for key := range strings.FieldsSeq(n.keys) {
			s, ok := scopeOf(specimens(), strings.NewReplacer("pools", "pools[0]", "keys.", "keys[0].", "models.", "models[0].",
				"workers.", "workers[0].", "shadow.", "shadow[0].", "canary.", "canary[0].",
				"[]", "[0]", "to.", "to[0].").Replace(key))
			if !ok {
				t.Errorf("there is no key %s", key)
				continue
			}
			for need := range strings.FieldsSeq(n.anyOf) {
				if need[0] == '?' && words[need] == nil {
					t.Errorf("%s: there is no word %s", key, need)
				}
				s.meets(need) // which panics if there is no such key
			}
		}
	}
}

// TestDefaultsAreNotNoted: neither the reference with all keys, nor a file without any.
func TestDefaultsAreNotNoted(t *testing.T) {
	for _, text := range []string{DefaultsTOML(), "[[pools]]\nworkers = [{ url = 'http://a' }]\n"} {
		c, err := Parse([]byte(text), "x.toml")
		if err != nil {
			t.Fatal(err)
		}
		if notes := Notes(c); len(notes) > 0 {
			t.Errorf("%v", notes)
		}
	}
}
