package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// chats are conversations under way, each of its own kind.
type chats [][]chatMessage

func newChats(n int) (all chats) {
	for i := range n {
		all = append(all, []chatMessage{{"system", strings.Repeat(fmt.Sprintf("Guest %d. ", i*7919), 80)}})
	}
	return all
}

// turn sends the next turn of each chat, and returns the share of prompt tokens that the engines found in their caches.
func (all chats) turn(r *running) float64 {
	r.t.Helper()
	cached, total := 0, 0
	for i := range all {
		all[i] = append(all[i], chatMessage{"user", "And when is high water after that?"})
		s := r.do("POST", "/v1/chat/completions", chatBody(false, all[i]))
		if s.status != 200 || s.err != nil {
			r.t.Fatalf("chat %d: %d %v %s", i, s.status, s.err, s.body)
		}
		content, found := s.text(r.t)
		all[i] = append(all[i], chatMessage{"assistant", content})
		var c struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(s.body), &c); err != nil {
			r.t.Fatal(err)
		}
		cached += found
		total += c.Usage.Prompt
	}
	return float64(cached) / float64(total)
}

// With a state file a restart is not a cold start; without one it is.
func TestRestartIsNotAColdStart(t *testing.T) {
	t.Parallel()
	rates := map[bool]float64{}
	for _, with := range []bool{true, false} {
		toml := settings("prefixaware", sims(t, 6, vllmsim.Config{}).URLs()...)
		if with {
			toml = withServer(toml, fmt.Sprintf("state_file = %q", filepath.Join(t.TempDir(), "state")))
		}
		all := newChats(36)
		one := start(t, toml, 6)
		all.turn(one)
		before := all.turn(one)
		if err := one.stop(); err != nil {
			t.Fatal(err)
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] }) // ties go by turns
		after := all.turn(start(t, toml, 6))
		t.Logf("state file %v: %.3f of the tokens found before, %.3f after", with, before, after)
		rates[with] = after / before
	}
	if rates[true] < 0.9 || rates[false] > 0.8 {
		t.Errorf("hit rate after a restart: %.2f of that before with a state file, %.2f without; want at least 0.9 and less",
			rates[true], rates[false])
	}
}

// Of a state file that cannot be read or written no client sees anything.
func TestStateFileNeverInTheWay(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "router")
	if err := os.WriteFile(file, []byte("WHST, and then nothing that was written by a router"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := newChats(3)
	toml := withServer(settings("prefixaware", f.URLs()...), fmt.Sprintf("state_file = %q", file))
	one := start(t, toml, 2)
	all.turn(one)
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || len(b) < 300 || strings.Contains(string(b), "nothing that") {
		t.Errorf("%d bytes, %v; want it written anew", len(b), err)
	}
	two := start(t, toml, 2)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	two.memory.Save()
	all.turn(two)
	if err := two.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestStateOfReloadedModels: the state file has the models that a reload gave a pool, so that the next start with them
// takes the pool's part.
func TestStateOfReloadedModels(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	before := withServer(settings("prefixaware", f.URLs()...), fmt.Sprintf("state_file = %q", filepath.Join(t.TempDir(), "state")))
	after := strings.Replace(before, `models = ["*"]`, `models = ["sim", "other"]`, 1)
	one := start(t, before, 2)
	write(t, one.file, after)
	if err := one.Reload(); err != nil {
		t.Fatal(err)
	}
	newChats(3).turn(one)
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	launch(t, after, slog.New(slog.NewTextHandler(&log, nil)))
	if log.Count("caches is restored") != 1 {
		t.Errorf("nothing of the pool was restored:\n%s", &log)
	}
}
