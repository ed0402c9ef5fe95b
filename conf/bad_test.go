package conf

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the errors that are got into testdata/conf/bad")

// Each file holds a wrong configuration and the whole error it must get: line, key, remedy.
func TestBad(t *testing.T) {
	golden(t, "bad", 25, func(data []byte) error {
		_, err := Parse(data, "x.toml")
		return err
	})
}

// The same for files of workers alone.
func TestBadWorkers(t *testing.T) {
	golden(t, "bad-workers", 5, func(data []byte) error {
		_, err := parseWorkers(data, "w.toml")
		return err
	})
}

// golden compares what parse returns for each file of the folder with the error that stands in the file.
func golden(t *testing.T, folder string, least int, parse func([]byte) error) {
	const mark = "-- want --\n"
	files, err := filepath.Glob("../testdata/conf/" + folder + "/*.txt")
	if err != nil || len(files) < least {
		t.Fatalf("%d files, %v; want at least %d", len(files), err, least)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, ok := strings.Cut(string(data), mark)
			if !ok {
				t.Fatalf("%s has no line %q", file, mark)
			}
			err = parse([]byte(input))
			if err == nil {
				t.Fatal("accepted")
			}
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(input+mark+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestErrorsNeverShowPasswords(t *testing.T) {
	for _, url := range []string{"http://name:secret@a:1", "ftp://name:secret@a", "http://name:secret@a b", "//name:secret@a", "name:secret@a"} {
		_, err := Parse([]byte("[[pools]]\nworkers = [{url = '"+url+"'}]"), "x.toml")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A key that was written where its file's or variable's name belongs must not end up in a log.
func TestErrorsNeverShowKeys(t *testing.T) {
	t.Setenv("WARMPATH_TEST_KEY", "sk-secret with a space")
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "sk-secret\nsk-secret\n")
	for _, doc := range []string{
		"keys = 'sk-secret-12345678'",
		"keys = ['sk-secret-12345678']",
		"[keys]\nfile = 'sk-secret-12345678'",
		"[[keys]]\nname = 'a'\nkey = 'sk-secret-12345678'",
		"[[keys]]\nname = 'a'\nmodels = 'sk-secret-12345678'\nfile = 'x'",
		"[[keys]]\nname = 'a'\nenv = 'sk-secret-12345678'",
		"[[keys]]\nname = 'a'\nenv = 'WARMPATH_TEST_KEY'",
		"[[keys]]\nname = 'a'\nfile = '" + file + "'",
		"[[keys]]\nname = 'a'\nfile = '../testdata/conf/files/good.key'\n[[keys]]\nname = 'sk'\nfile = '../testdata/conf/files/good.key'",
		"[[pools]]\nworker_key_env = 'sk-secret-12345678'",
		"[[pools]]\nworker_key_file = '" + file + "'",
	} {
		_, err := Parse([]byte(doc), "x.toml")
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "example-of") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestProblemsAreTyped(t *testing.T) {
	_, err := Parse([]byte("[server]\nlisen = 1\n"), "x.toml")
	ps, ok := errors.AsType[Problems](err)
	if !ok || len(ps) != 2 {
		t.Fatalf("got %v", err)
	}
	want := Problem{File: "x.toml", Line: 2, Key: "server.lisen", What: "unknown key", Remedy: `did you mean "listen"?`}
	if ps[1] != want {
		t.Errorf("got %+v; want %+v", ps[1], want)
	}
}
