package seldom

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// TestOnceHammer: each key has one line, however many warn at once, until so many keys are known.
func TestOnceHammer(t *testing.T) {
	var o Once
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range maxKeys {
				o.Warn(log, fmt.Sprint(i), "line", "key", i)
			}
		})
	}
	all.Wait()
	o.Warn(log, "another", "one too many")
	if n := strings.Count(text.String(), "level=WARN msg=line key="); n != maxKeys || strings.Contains(text.String(), "many") {
		t.Errorf("%d lines of %d keys", n, maxKeys)
	}
}
