package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
)

// keys are those of a scenario's clients, and what each saw. Nil is none.
type keys struct {
	files map[string]string // by name

	mu   sync.Mutex // guards all below
	seen map[string]*sums
	away map[string]int // requests that were turned away
	late map[string]int // whose clients gave up
}

// newKeys writes a file for the key of each class.
func newKeys(dir string, sc *setup.Scenario) (*keys, error) {
	k := &keys{files: map[string]string{}, seen: map[string]*sums{}, away: map[string]int{}, late: map[string]int{}}
	for i := range sc.Classes {
		name := sc.Classes[i].Key
		k.files[name], k.seen[name] = filepath.Join(dir, name+".key"), &sums{}
		if err := os.WriteFile(k.files[name], []byte(secret(name)), 0o600); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func secret(name string) string { return name + "-0123456789abcdef" }

// tables are their tables of a configuration.
func (k *keys) tables() string {
	if k == nil {
		return ""
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		fmt.Fprintf(&b, "[[keys]]\nname = %q\nfile = %q\n", name, k.files[name])
	}
	return b.String()
}

// sign gives a request the caller's key and priority.
func (k *keys) sign(r *http.Request, c *traffic.Caller) {
	if k == nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+secret(c.Key))
	if c.Priority != 0 {
		r.Header.Set("X-Warmpath-Priority", strconv.Itoa(c.Priority))
	}
}

func (k *keys) answered(name string, one *sums) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[name].add(one)
}

func (k *keys) refused(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away[name]++
}

func (k *keys) gaveUp(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late[name]++
}
