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
	const mark = "-- want --\n"
	files, err := filepath.Glob("../testdata/conf/bad/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v; want at least 10", len(files), err)
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
			_, err = Parse([]byte(input), "x.toml")
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
