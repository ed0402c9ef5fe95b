package conf

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	f := func(text, want, wrong string) {
		t.Helper()
		write(t, file, text)
		t.Setenv("WARMPATH_TEST_KEY", text)
		for _, k := range []Key{{Name: "a", File: file}, {Name: "a", Env: "WARMPATH_TEST_KEY"}} {
			got, err := k.Secret()
			if wrong == "" && (err != nil || got != want) {
				t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
			}
			if wrong != "" && (err == nil || got != "" || !strings.Contains(err.Error(), wrong)) {
				t.Errorf("%q: got %q, %v; want an error with %q", text, got, err, wrong)
			}
		}
	}
	f("12345678", "12345678", "")
	f("12345678\n", "12345678", "")
	f("12345678\r\n", "12345678", "")
	f("!~345678", "!~345678", "")
	f("12345678\n\n", "", "at byte 9")
	f(" 12345678", "", "at byte 1")
	f("1234567\u00e9", "", "at byte 8")
	f("1234567\n", "", "has 7 characters")
	f("\n", "", "holds no key")
	f("", "", "holds no key")
	f(strings.Repeat("x", maxSecret), strings.Repeat("x", maxSecret), "")
	f(strings.Repeat("x", maxSecret+1), "", "longer than")
}

func TestSecretIsReadAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	k := Key{Name: "a", File: file}
	if s, err := k.Secret(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no file: got %q, %v", s, err)
	}
	for _, text := range []string{"first-key", "second-key"} {
		write(t, file, text)
		if s, err := k.Secret(); err != nil || s != text {
			t.Errorf("got %q, %v; want %q", s, err, text)
		}
	}
}

func TestWorkerKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "EMPTY\n") // as people start vLLM on their desk
	t.Setenv("WARMPATH_TEST_KEY", "")
	f := func(p Pool, want string, ok bool) {
		t.Helper()
		got, err := p.WorkerKey()
		if got != want || (err == nil) != ok {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	f(Pool{}, "", true)
	f(Pool{WorkerKeyFile: file}, "EMPTY", true)
	f(Pool{WorkerKeyFile: file + "x"}, "", false)
	f(Pool{WorkerKeyEnv: "WARMPATH_TEST_KEY"}, "", false)
	f(Pool{WorkerKeyEnv: "no name"}, "", false)
}
