package arena

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shmDir is where workers open a segment. shm_open(3) uses this folder.
var shmDir = "/dev/shm" // changed by tests

// segment is a file in /dev/shm with two names. Workers open path; keeper holds the inode when a worker deletes path.
type segment struct {
	path, keeper string
	fd           int
	inode        unix.Stat_t
	mem          []byte
	attached     bool
	log          *slog.Logger
	missing      bool // the names could not be restored, which was logged
}

func openSegment(c Config, size int64) (*segment, error) {
	if c.Segment == "." || c.Segment == ".." || len(c.Segment) > 200 || strings.ContainsAny(c.Segment, "/\x00") {
		return nil, fmt.Errorf("arena: segment %.80q: that is no name of a file in %s; write letters, digits, _ and -",
			c.Segment, shmDir)
	}
	s := &segment{
		path:   filepath.Join(shmDir, c.Segment),
		keeper: filepath.Join(shmDir, "."+c.Segment+".warmpath"),
		fd:     -1, log: c.Log,
	}
	if err := s.open(c.Mode, size); err != nil {
		if s.fd >= 0 {
			unix.Close(s.fd)
		}
		return nil, fmt.Errorf("arena: segment %s: %w", s.path, err)
	}
	return s, nil
}

// open locks the file, sizes and maps it, and only then gives it the name that workers open.
func (s *segment) open(mode os.FileMode, size int64) error {
	if err := s.lock(mode); err != nil {
		return err
	}
	if err := unix.Fstat(s.fd, &s.inode); err != nil {
		return err
	}
	if err := s.checkOwner(); err != nil {
		return err
	}
	var named unix.Stat_t
	if err := unix.Lstat(s.path, &named); err == nil && !s.is(&named) {
		return fmt.Errorf("a file of that name is there and is not warmpath's; delete it if nobody uses it, " +
			"or choose another name")
	}
	if s.inode.Size != 0 {
		s.attached = !s.alone()
	}
	if err := s.resize(size); err != nil {
		return err
	}
	var err error
	s.mem, err = unix.Mmap(s.fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("it cannot be mapped: %w", err)
	}
	if err := unix.Link(s.keeper, s.path); err != nil && !errors.Is(err, unix.EEXIST) {
		unix.Munmap(s.mem)
		return fmt.Errorf("it cannot be given its name: %w", err)
	}
	return nil
}

// lock opens the keeper, or makes it, and locks its inode against other daemons.
func (s *segment) lock(mode os.FileMode) error {
	for try := range 10 { // a closing daemon deletes the file that we have just opened
		fd, err := unix.Open(s.keeper, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, uint32(mode.Perm()))
		if err != nil {
			return fmt.Errorf("%s cannot be opened: %w", s.keeper, err)
		}
		s.fd = fd
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) && try < 2 { // another start checks whether it is an orphan
			unix.Close(fd)
			s.fd = -1
			time.Sleep(lookAgain)
			continue
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			return ErrHeld
		}
		if err != nil {
			return err
		}
		var held, named unix.Stat_t
		if unix.Fstat(fd, &held) == nil && unix.Lstat(s.keeper, &named) == nil && held.Ino == named.Ino {
			return unix.Fchmod(fd, uint32(mode.Perm())) // whatever the umask is
		}
		unix.Close(fd)
		s.fd = -1
	}
	return fmt.Errorf("%s is deleted again and again; who does it?", s.keeper)
}

// lookAgain is longer than RemoveOrphans holds a lock.
const lookAgain = 5 * time.Millisecond

// checkOwner refuses a file that another user has prepared: /dev/shm is open to all.
func (s *segment) checkOwner() error {
	if own := os.Geteuid(); own != int(s.inode.Uid) {
		return fmt.Errorf("%s belongs to user %d, and this process is user %d; delete it, or choose another name",
			s.keeper, s.inode.Uid, own)
	}
	return nil
}

func (s *segment) is(other *unix.Stat_t) bool {
	return other.Ino == s.inode.Ino && other.Dev == s.inode.Dev
}

// alone reports whether no other process has the file open or mapped: only then the kernel grants a write lease.
func (s *segment) alone() bool {
	_, err := unix.FcntlInt(uintptr(s.fd), unix.F_SETLEASE, unix.F_WRLCK)
	if err != nil {
		return false
	}
	_, err = unix.FcntlInt(uintptr(s.fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// resize gives the file its size and takes all of its pages.
func (s *segment) resize(size int64) error {
	was := s.inode.Size
	if was != size && s.attached {
		return fmt.Errorf("it has %d bytes, %d are asked for, and workers have it mapped; stop them first, or keep "+
			"the size", was, size)
	}
	if was != size {
		if err := unix.Ftruncate(s.fd, 0); err != nil { // its old content is worthless
			return err
		}
	}
	err := s.fill(size)
	if err != nil && !s.attached {
		_ = unix.Unlink(s.keeper)
		_ = s.unlink(s.path)
	}
	return err
}

// fill takes all pages of the file. It checks the free space first: the kernel fails only after it has taken all that
// there is, and frees that again.
func (s *segment) fill(size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(shmDir, &fs); err != nil {
		return err
	}
	var file unix.Stat_t
	if err := unix.Fstat(s.fd, &file); err != nil {
		return err
	}
	free := int64(fs.Bavail)*fs.Bsize + file.Blocks*512
	err := unix.ENOSPC
	if size <= free {
		err = errno(unix.Fallocate(s.fd, 0, 0, size))
	}
	switch err {
	case 0:
		return nil
	case unix.ENOSPC:
		return fmt.Errorf("it needs %d bytes and %s has room for %d; lower kv_cache.max_bytes or enlarge %s "+
			"(--shm-size, an emptyDir of medium Memory, mount -o remount,size=)", size, shmDir, free, shmDir)
	}
	return fmt.Errorf("its %d bytes are not to be had: %w", size, err)
}

// errno returns the error of a system call; 0 = it succeeded.
func errno(err error) syscall.Errno {
	var no syscall.Errno
	if err != nil && !errors.As(err, &no) {
		return unix.EIO
	}
	return no
}

// tend restores a name that was deleted.
func (s *segment) tend() {
	var at unix.Stat_t
	err := unix.Lstat(s.path, &at)
	if err == nil && s.is(&at) && unix.Access(s.keeper, unix.F_OK) == nil {
		s.missing = false
		return
	}
	switch {
	case err == nil && s.is(&at): // the second name is missing
		err = unix.Link(s.path, s.keeper)
	case err == nil:
		err = errors.New("another file has taken the name")
	default:
		err = unix.Link(s.keeper, s.path)
	}
	if err != nil && !s.missing {
		s.missing = true
		s.log.Error("workers that start now do not find the shared memory", "segment", s.path, "error", err,
			"remedy", "delete what has its name and restart this daemon")
	} else if err == nil {
		s.missing = false
		s.log.Debug("the name of the shared memory was deleted and is back", "segment", s.path)
	}
}

// isTorn compares the pages that the file has with those that it was given.
func (s *segment) isTorn() bool {
	var file unix.Stat_t
	err := unix.Fstat(s.fd, &file)
	return err == nil && (file.Size < int64(len(s.mem)) || file.Blocks*512 < int64(len(s.mem)))
}

func (s *segment) mend() error {
	size := int64(len(s.mem))
	if err := unix.Ftruncate(s.fd, size); err != nil {
		return fmt.Errorf("arena: segment %s: it cannot be given its %d bytes again: %w", s.path, size, err)
	}
	if err := s.fill(size); err != nil {
		return fmt.Errorf("arena: segment %s: %w", s.path, err)
	}
	return nil
}

func (s *segment) close() (kept bool, err error) {
	kept = !s.alone()
	if !kept {
		err = errors.Join(s.unlink(s.path), unix.Unlink(s.keeper))
	}
	return kept, errors.Join(err, unix.Munmap(s.mem), unix.Close(s.fd))
}

// unlink deletes a name if it is still the segment's.
func (s *segment) unlink(path string) error {
	var at unix.Stat_t
	if err := unix.Lstat(path, &at); err != nil || !s.is(&at) {
		return nil
	}
	return unix.Unlink(path)
}
