package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestEveryScenarioIsWhole(t *testing.T) {
	for _, name := range Names() {
		s, err := Read(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.About == "" || s.Workers < 1 || s.Engine.Hourly <= 0 || s.Engine.PrefillRate <= 0 {
			t.Errorf("%s says too little: %+v", name, s)
		}
		if s.Trace.File != "" {
			continue
		}
		l, err := s.Load(1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := s.World(l)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		full, err := c.Engine.Complete()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, chat := range l.Chats {
			last := &chat.Turns[len(chat.Turns)-1]
			if n := last.Tokens() + last.Output; n > full.MaxModelLen {
				t.Errorf("%s has a turn of %d tokens, and a worker takes %d", name, n, full.MaxModelLen)
				break
			}
		}
	}
}

// A scenario that names no model has the default one: without its price the report would have no cost.
func TestAScenarioWithoutAModel(t *testing.T) {
	engineOf := func(text string) Engine {
		t.Helper()
		s, err := parse("mine", "", text+"[engine]\nkv_tokens = 4096\n")
		if err != nil {
			t.Fatal(err)
		}
		return s.Engine
	}
	none, named := engineOf("workers = 4\n"), engineOf("workers = 4\nmodel = \"default\"\n")
	if none != named || none.Hourly == 0 || none.KVTokens != 4096 {
		t.Errorf("%+v; want %+v", none, named)
	}
}

// A scenario changes the one that it is like, number by number, and that its model.
func TestLike(t *testing.T) {
	b, err := Read("B")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read("X")
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Fates) != 2 || len(x.Classes) != 1 || !reflect.DeepEqual(x.Classes[0], b.Classes[0]) || x.Seconds != b.Seconds ||
		x.Engine != b.Engine || x.About == b.About {
		t.Errorf("X is %+v; want B with two fates", x)
	}
	g, err := Read("G")
	if err != nil {
		t.Fatal(err)
	}
	if g.Engine.CPUTokens != 4*b.Engine.KVTokens || g.Engine.PrefillRate != b.Engine.PrefillRate {
		t.Errorf("G's engine is %+v", g.Engine)
	}
}

func TestRead(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "own.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(path)
		if err == nil {
			var l, loadErr = s.Load(1)
			err = loadErr
			if err == nil {
				_, err = s.World(l)
			}
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v; want one of %q", text, err, want)
		}
	}
	f("like = \"A\"\nworkers = 3\n", "")
	f("like = \"nothing\"", "no scenario of the lab")
	f("model = \"nothing\"", "models/default.toml")
	f("model = \"default\"\nwokers = 3", `"wokers", which is not known`)
	f("workers = \"three\"", "line 1")
	f("model = \"default\"", "no class")
	f("like = \"A\"\nsplit = \"odd\"", "random or session")
	f("like = \"A\"\n[[fate]]\nwhat = \"vanishes\"", "dies, comes, leaves or slows")
	f("model = \"default\"\n[trace]\nfile = \"none.jsonl\"", "--trace")
	f("like = \"A\"\n[engine]\nprefill_tokens_per_second = -4", "prefill_tokens_per_second is -4")
	f("like = \"A\"\n[engine]\nstep_seconds = inf", "from 0 to 3600")
	f("like = \"A\"\n[engine]\ngpu_hour = nan", "gpu_hour is NaN")
	f("like = \"A\"\n[engine]\nscrape_seconds = 1e-9", "0.01 at least")
	trace, err := filepath.Abs("../../../testdata/traces/conversation-60.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	f(fmt.Sprintf("[trace]\nfile = %q", trace), "")
	f(fmt.Sprintf("[trace]\nfile = %q\nfrom = 5000", trace), "correct from and until")
	if _, err := Read("nothing"); err == nil || !strings.Contains(err.Error(), "seeds-8k") {
		t.Errorf("an unknown name: %v; want the names that there are", err)
	}
	if _, err := Read("mine.wasm"); err == nil || !strings.Contains(err.Error(), "--strategy") {
		t.Errorf("a module in place of a scenario: %v; want where it belongs", err)
	}
	s, err := Read("../../../testdata/traces/conversation-60.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := s.Load(1); err != nil || l.Requests() != 60 {
		t.Errorf("a trace: %d requests, %v; want 60", l.Requests(), err)
	}
}
