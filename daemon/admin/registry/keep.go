package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"

	"github.com/warmpath/warmpath/conf"
)

// maxKept bounds the modules in memory, of 16 MiB at most each.
const maxKept = 8

// kept has what was pulled, by the digest of its manifest. A digest names the same bytes for all that ask.
var kept struct {
	sync.Mutex
	modules map[string][]byte
}

// Kept returns the module if it has been pulled before, else nil. A file has the sum of its bytes in its name.
func (s Source) Kept() []byte {
	kept.Lock()
	defer kept.Unlock()
	if wasm := kept.modules[s.digest()]; wasm != nil || s.Dir == "" {
		return wasm
	}
	files, _ := filepath.Glob(s.file("*"))
	for _, file := range files {
		if wasm, err := os.ReadFile(file); err == nil && file == s.file(sum(wasm)) {
			s.remember(wasm)
			return wasm
		}
	}
	return nil
}

// keep keeps a module. What cannot be written is only kept in memory.
func (s Source) keep(wasm []byte) {
	kept.Lock()
	defer kept.Unlock()
	s.remember(wasm)
	if s.Dir != "" && os.MkdirAll(s.Dir, 0o755) == nil {
		_ = conf.WriteWhole(s.file(sum(wasm)), wasm)
	}
}

// remember is called under kept's lock.
func (s Source) remember(wasm []byte) {
	if kept.modules == nil || len(kept.modules) >= maxKept {
		kept.modules = map[string][]byte{}
	}
	kept.modules[s.digest()] = wasm
}

func (s Source) file(sum string) string { return filepath.Join(s.Dir, s.digest()+"."+sum+".wasm") }

func sum(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}
