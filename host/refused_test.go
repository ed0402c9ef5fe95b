package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

// TestRefusedCalls: what a module asks for and may not have is counted by the entry of allow that it lacks, and logged
// once.
func TestRefusedCalls(t *testing.T) {
	for _, c := range []struct {
		call  string
		args  []uint64
		allow []string
		want  map[string]uint64
	}{
		{"str", []uint64{uint64(abi.StrHeader), 6, 0, 100}, nil, map[string]uint64{"headers:x-tier": 4}},
		{"str", []uint64{uint64(abi.StrHeader), 6, 0, 100}, []string{"headers:x-other"}, map[string]uint64{"headers:x-tier": 4}},
		{"str", []uint64{uint64(abi.StrHeader), 6, 0, 100}, []string{"headers:x-tier"}, nil},
		{"kv_incr", []uint64{0, 3, 1, 0}, nil, map[string]uint64{"kv": 4}},
		{"kv_get", []uint64{0, 3, 512, 9}, []string{"kv"}, nil}, // the host has no store
		{"str", []uint64{uint64(abi.StrHeader), 0, 0, 100}, nil, nil},
	} {
		var log bytes.Buffer
		h := newHost(t, Config{Slots: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		s, err := h.Load(ctx, "m", caller(t, importNamed(c.call), c.args, "X-Tier"), Options{Allow: c.allow})
		if err != nil {
			t.Fatal(err)
		}
		before := s.Stats().Refused
		for range 4 {
			s.Pick(frame(4, 1))
		}
		got := s.Stats().Refused
		for entry, n := range before { // by the self-test
			if got[entry] -= n; got[entry] == 0 {
				delete(got, entry)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s with allow %q: %v; want %v", c.call, c.allow, got, c.want)
		}
		if lines := strings.Count(log.String(), "asks for what it may not have"); lines != len(c.want) {
			t.Errorf("%s with allow %q: %d lines; want %d: %s", c.call, c.allow, lines, len(c.want), &log)
		}
		s.Close(ctx)
	}
}

// TestRefusedNamesAreBounded: a module may ask for a name of its own making each time.
func TestRefusedNamesAreBounded(t *testing.T) {
	var r refused
	first := 0
	for i := range 10 * maxRefused {
		if r.count(fmt.Sprint("headers:x-", i)) {
			first++
		}
	}
	if n := len(r.all()); n != maxRefused || first != maxRefused {
		t.Errorf("%d names, %d of them new; want %d", n, first, maxRefused)
	}
	if r.count("headers:x-1") || r.all()["headers:x-1"] != 2 {
		t.Errorf("a known name is not counted further: %v", r.all())
	}
}
