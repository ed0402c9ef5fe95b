package spill

import (
	"os"
	"syscall"
)

// openDirect opens a segment for reads and writes past the page cache; nil = the file system does not support that.
func openDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}
