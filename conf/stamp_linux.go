package conf

import (
	"os"
	"syscall"
	"time"
)

// stamp differs between two contents of a file. A program can set the time of a file's last write, as cp -p does, but
// not that of its last change. Some file systems of a user's program have only the first.
type stamp struct {
	device, inode    uint64
	size             int64
	written, changed time.Time
}

// stampOf returns a file's stamp. ok is false if it has none.
func stampOf(info os.FileInfo) (s stamp, ok bool) {
	raw, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return s, false
	}
	return stamp{
		device:  uint64(raw.Dev),
		inode:   raw.Ino,
		size:    raw.Size,
		written: info.ModTime(),
		changed: time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)),
	}, true
}
