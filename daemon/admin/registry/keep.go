package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/conf"
)

// maxKept bounds the modules that memory and the folder keep, of 16 MiB at most each.
const maxKept = 8

// kept has what was pulled. A digest names the same bytes for all that ask.
var kept keep

// keep has modules by the digest of their manifests.
type keep struct {
	mu      sync.Mutex // guards all below
	modules map[string][]byte
	order   []string // the oldest first
}

// get returns nil if the module is not there.
func (k *keep) get(digest, dir string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wasm := k.modules[digest]; wasm != nil || dir == "" {
		return wasm
	}
	for _, file := range inFolder(dir, digest) {
		wasm, err := os.ReadFile(file)
		sum := sha256.Sum256(wasm)
		if err == nil && strings.HasSuffix(file, hex.EncodeToString(sum[:])+".wasm") {
			k.add(digest, wasm)
			return wasm
		}
	}
	return nil
}

// put keeps a module. What cannot be written is only kept in memory.
func (k *keep) put(digest, dir string, wasm []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(digest, wasm)
	if dir == "" || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	sum := sha256.Sum256(wasm)
	_ = conf.WriteWhole(filepath.Join(dir, digest+"."+hex.EncodeToString(sum[:])+".wasm"), wasm)
	all := inFolder(dir, "*")
	for _, file := range all[:max(0, len(all)-maxKept)] {
		_ = os.Remove(file)
	}
}

func (k *keep) add(digest string, wasm []byte) {
	if k.modules == nil {
		k.modules = map[string][]byte{}
	}
	k.modules[digest] = wasm
	k.order = append(k.order, digest)
	if len(k.order) > maxKept {
		delete(k.modules, k.order[0])
		k.order = k.order[1:]
	}
}

// inFolder lists the files of a digest, those of the sums of manifest and module, the oldest first.
func inFolder(dir, digest string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, digest+".*.wasm"))
	age := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(age(a), age(b)) })
	return files
}
