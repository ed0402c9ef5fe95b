package kvcache

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	const machine = "MemFree:  77 kB\nMemTotal:       16384 kB\nMemAvailable:   1 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 0},
		{"a machine", map[string]string{"proc/meminfo": machine}, 16 << 20},
		{"a container", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": "2097152\n"}, 2 << 20},
		{"one without a limit", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": "max\n"}, 16 << 20},
		{"an old one", map[string]string{"proc/meminfo": machine,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16 << 20},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryUnder(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
