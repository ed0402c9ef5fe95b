// Package logtest keeps logs for tests, and for the programs under testdata that measure.
package logtest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Log is what was written to it. Many may write it while a test reads it. The zero Log is empty.
type Log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text stands in it.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Lines are its lines, in JSON.
func (l *Log) Lines(t testing.TB) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

// With returns the lines, in JSON, in which a key has a value.
func (l *Log) With(t testing.TB, key, value string) []map[string]any {
	t.Helper()
	return slices.DeleteFunc(l.Lines(t), func(line map[string]any) bool { return line[key] != value })
}
