package kvcache

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SystemMemory returns the bytes of memory that this process may use: those of the machine, or of its container; 0 =
// not known, as on other systems than Linux.
func SystemMemory() int64 { return memoryUnder("/") }

// memoryUnder is SystemMemory of the files below root.
func memoryUnder(root string) int64 {
	least := int64(0)
	take := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			take(n << 10)
		}
	}
	for _, limit := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, _ := os.ReadFile(filepath.Join(root, limit))
		n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
		take(n)
	}
	return least
}
