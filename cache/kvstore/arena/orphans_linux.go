package arena

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RemoveOrphans deletes segments of this user that a killed daemon has left: no process has them open or mapped. A
// start takes up the segment except, its own. No other start would find the rest, and they take memory.
func RemoveOrphans(except string, log *slog.Logger) {
	keepers, err := filepath.Glob(filepath.Join(shmDir, ".*.warmpath"))
	if err != nil {
		return
	}
	for _, keeper := range keepers {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(keeper), "."), ".warmpath")
		if name == "" || name == except {
			continue
		}
		s := &segment{path: filepath.Join(shmDir, name), keeper: keeper, log: log}
		if s.removeOrphan() {
			log.Info("shared memory that a killed daemon had left was given back", "segment", s.path, "bytes", s.inode.Size)
		}
	}
}

// removeOrphan deletes both names if no process has the file. A daemon that is about to take the file up has it open;
// if it finds the file locked by us at that moment, it tries again: see lock.
func (s *segment) removeOrphan() bool {
	fd, err := unix.Open(s.keeper, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	s.fd = fd
	if unix.Fstat(fd, &s.inode) != nil || s.inode.Mode&unix.S_IFMT != unix.S_IFREG || int(s.inode.Uid) != os.Geteuid() ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !s.alone() {
		return false
	}
	return s.unlink(s.keeper) == nil && s.unlink(s.path) == nil
}
