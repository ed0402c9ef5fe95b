package discover

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
)

// answer is a format whose file holds these workers, or is at fault.
type answer struct {
	Format[conf.Worker]
	workers *[]conf.Worker
	fault   *error
}

func (a answer) ReadFile(string) ([]conf.Worker, error) { return *a.workers, *a.fault }

// TestFileSource: what was read last stays, until another file is followed.
func TestFileSource(t *testing.T) {
	var log bytes.Buffer
	var fault error
	workers := []conf.Worker{conf.WorkerAt("http://h:1")}
	f := fileSource[conf.Worker]{log: slog.New(slog.NewTextHandler(&log, nil)),
		format: answer{workers: &workers, fault: &fault}}
	want := func(what, urlsWanted string, lines int) {
		t.Helper()
		f.read()
		if got := urls(f.last()); got != urlsWanted {
			t.Errorf("%s: %s; want %s", what, got, urlsWanted)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%s: %d lines; want %d:\n%s", what, got, lines, log.String())
		}
	}
	want("no file", "", 0)
	f.follow("a.toml")
	want("at first", "h:1", 1)
	want("the same again", "h:1", 1)
	workers = []conf.Worker{conf.WorkerAt("http://h:1"), conf.WorkerAt("http://h:2")}
	want("one more", "h:1 h:2", 2)
	workers[1].Labels = map[string]string{"tier": "batch"}
	workers = []conf.Worker{workers[0], workers[1]}
	want("the same slice, told of once it was changed", "h:1 h:2", 2)
	fault = errors.New("line 3")
	want("a wrong one", "h:1 h:2", 3)
	fault = nil
	f.follow("a.toml")
	want("the same file configured again", "h:1 h:2", 3)
	f.follow("b.toml")
	if got := f.last(); got != nil {
		t.Errorf("another file has the workers of the old one: %v", got)
	}
	workers = nil
	want("an empty one", "", 3)
}
