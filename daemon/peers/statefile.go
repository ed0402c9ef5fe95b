package peers

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// saveEvery is the time between two writes of a state file.
const saveEvery = time.Minute

// StateFile carries one router's view of its workers' caches over a restart, where no Redis does. Safe for concurrent
// use; a nil StateFile does nothing.
type StateFile struct {
	path string
	log  *slog.Logger

	saving sync.Mutex // one write at a time; guards all until mu

	written time.Time   // when the newest write began; zero: the next one is of all
	whole   int64       // bytes of the file, and
	logged  int64       // of its log
	fleet   uint32      // a sum of the pools, and their workers, of which the file is
	link    uint32      // the file's checksum, with which its log begins
	mine    os.FileInfo // the file as this process wrote or read it last; nil = it may be another's

	mu    sync.Mutex // guards all below
	found *state     // the file's content at the start, until Run; nil = none was accepted
	pools []stated
	last  Written
	held  bool // another process writes the file
}

// Written describes the writes of a state file, for an operator.
type Written struct {
	On       bool
	At       time.Time // of the newest file or part of its log that this process wrote whole; zero: none yet
	Bytes    int64     // of both
	Took     time.Duration
	Failed   bool   // the last try failed
	Failures uint64 // tries that failed
}

// Stats returns the state of the writes. It is zero for a nil StateFile, which is off.
func (f *StateFile) Stats() Written {
	if f == nil {
		return Written{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.last
	w.On = true
	return w
}

type stated struct {
	name   string
	models func() []string
	pool   *route.Pool
}

// OpenState reads the file. It ignores a file that is missing, broken, too old or of another release: it logs the
// reason, and Run replaces the file. An empty path returns nil.
func OpenState(path string, log *slog.Logger) *StateFile {
	if path == "" {
		return nil
	}
	f := &StateFile{path: path, log: log.With("file", path)}
	b, err := readBounded(path)
	if errors.Is(err, os.ErrNotExist) {
		f.log.Info("state file: there is none yet: the router starts without knowledge of the workers' caches")
		return f
	}
	if err == nil {
		log, _ := readBounded(path + logSuffix) // without it the file stands alone
		parts, cut := logParts(log, b)
		f.found, err = readStates(append([][]byte{b}, parts...), time.Now())
		if cut > 0 && err == nil {
			f.log.Warn("state file: the end of its log is cut: what was learnt last is lost", "log", path+logSuffix,
				"bytes", cut)
		}
	}
	if err != nil {
		f.log.Warn("state file refused: the router starts without knowledge of the workers' caches", "error", err)
	}
	return f
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; make it readable for this user", err)
	}
	defer file.Close()
	const most = maxState + maxState/8 // the answers, and the data around them
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errNoState
	} else if info.Size() > most {
		return nil, fmt.Errorf("it has %d bytes; at most %d. Nothing need be done, it is written anew", info.Size(), most)
	}
	return io.ReadAll(io.LimitReader(file, most))
}

// Join restores a pool from the file. From now on the pool is saved in it, until leave is called. The pool must have
// served no request: it takes over the file's secret. models returns the pool's configured models, which a reload may
// change. Join restores nothing if the file has other models for the pool, or if no worker is the same.
func (f *StateFile) Join(name string, models func() []string, pool *route.Pool) (leave func()) {
	if f == nil {
		return func() {}
	}
	s := stated{name: name, models: models, pool: pool}
	f.mu.Lock()
	f.pools = append(f.pools, s)
	found := f.found
	f.mu.Unlock()
	if found != nil {
		f.restore(found, &s)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pools = slices.DeleteFunc(f.pools, func(o stated) bool { return o.pool == pool })
	}
}

func (f *StateFile) restore(found *state, s *stated) {
	log := f.log.With("pool", s.name)
	refuse := func(why string) {
		log.Warn("state file: its part of this pool is refused: the pool starts without knowledge of its workers' caches",
			"error", why+"; nothing need be done, it is written anew")
	}
	p := found.newest().pool(s.name)
	if p == nil {
		refuse("it has no pool of this name")
		return
	}
	if p.models != modelsSum(s.models()) {
		refuse("the pool's models were others when it was written")
		return
	}
	began := time.Now()
	same := map[uint64]bool{}
	all := named(s.pool, p.secret, began)
	for _, w := range p.workers {
		same[w.key] = slices.ContainsFunc(all, func(n Named) bool { return n.Key == w.key && n.Address == w.address })
	}
	for key, is := range same {
		if !is {
			delete(same, key)
		}
	}
	if len(same) == 0 {
		refuse("none of the pool's workers is in it with the same id and url")
		return
	}
	s.pool.SetSecret(p.secret)
	s.pool.Relearnt(&p.experience)
	for _, w := range p.workers {
		if same[w.key] {
			s.pool.Relearn(w.key, &w.learnt)
		}
	}
	for part := found; part != nil; part = part.later {
		if err := part.replay(s); err != nil {
			refuse("BUG: a part of it is not read: " + err.Error())
			break
		}
	}
	for _, n := range all { // another worker may have got the id of one in the file
		if !same[n.Key] {
			s.pool.Forget(n.Key)
		}
	}
	log.Info("state file: the router's view of the workers' caches is restored", "workers", len(same), "of", len(all),
		"blocks", s.pool.Index.Stats().Blocks, "written", began.Sub(found.newest().at).Round(time.Second).String()+" ago",
		"took", time.Since(began).Round(time.Millisecond))
}

// replay applies the frames of a part.
func (part *state) replay(s *stated) error {
	p := part.pool(s.name)
	if p == nil {
		return nil
	}
	_, h := NewPair(s.pool, 2)
	h.BeginReplay()
	for _, frame := range p.frames {
		if err := h.Apply(frame, part.at, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// Run writes the file every minute, and a last time when ctx ends. It drops what the file held at the start.
func (f *StateFile) Run(ctx context.Context) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.found = nil
	f.mu.Unlock()
	f.try()
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f.Save()
			return
		case <-tick.C:
			f.Save()
		}
	}
}

// try logs at the start if the file cannot be written, and not only when the first minute is lost.
func (f *StateFile) try() {
	f.saving.Lock()
	defer f.saving.Unlock()
	file, err := f.create()
	if err == nil {
		file.Close()
		err = os.Remove(file.Name())
	}
	f.report(err)
}

// Save writes the file now: the chains that were used since the last time to the end of its log, or if the log has
// become longer than the file, or the fleet is another one, all to a new file. Another process reads the old file or
// the new one, never a part. Save logs the first failure of a series, and its end.
func (f *StateFile) Save() {
	if f == nil {
		return
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	f.mu.Lock()
	held := f.held
	f.mu.Unlock()
	if held {
		return
	}
	if is, err := os.Stat(f.path); err == nil && f.mine != nil && !os.SameFile(is, f.mine) {
		f.log.Warn("state file: another process writes it too, and each removes what the other knows; give each router a " +
			"server.state_file of its own")
		f.written = time.Time{}
	}
	began := time.Now()
	write, fleet := f.write, f.sum(began)
	if !f.written.IsZero() && fleet == f.fleet && f.logged <= f.whole {
		write = f.append
	}
	bytes, err := write()
	f.mine, _ = os.Stat(f.path)
	f.report(err)
	f.written, f.fleet = began, fleet
	if err != nil {
		f.written = time.Time{}
	}
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.last.At, f.last.Bytes, f.last.Took = began, bytes, time.Since(began)
	}
}

// Hold writes the file a last time, because another process reads it now and writes it from then on. After release this
// process writes it again. Two processes that write at once would remove each other's half-written file, and the older
// view would come last.
func (f *StateFile) Hold() (release func()) {
	if f == nil {
		return func() {}
	}
	f.Save()
	f.hold(true)
	return func() { f.hold(false) }
}

func (f *StateFile) hold(on bool) {
	f.saving.Lock() // waits for a write under way
	defer f.saving.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held, f.mine = on, nil
	f.written = time.Time{} // the other process may write meanwhile
}

func (f *StateFile) report(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := f.last.Failed
	f.last.Failed = err != nil
	switch {
	case err != nil && !failed:
		f.log.Warn("state file: it cannot be written: a restart would be a cold start; make its folder writable for this "+
			"user, with room on the disk", "error", err)
	case err == nil && failed:
		f.log.Info("state file: it is written again")
	}
	if err != nil {
		f.last.Failures++
	}
}

// create makes a temporary file in the folder of the state file, and removes one that a killed process has left. Only
// the owner may read it: it holds the secret.
func (f *StateFile) create() (*os.File, error) {
	name := f.path + ".tmp"
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// write writes a temporary file and renames it to the state file.
func (f *StateFile) write() (bytes int64, err error) {
	file, err := f.create()
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	f.link, err = f.writeTo(file, time.Time{})
	if err != nil {
		return 0, err
	}
	f.whole, err = closeWritten(file)
	if err != nil {
		return 0, err
	}
	if err := os.Rename(file.Name(), f.path); err != nil {
		return 0, err
	}
	f.logged = 0
	_ = os.Remove(f.path + logSuffix) // one that stays is of the file before, by its link
	return f.whole, nil
}

// append adds to the log what has changed since the last write.
func (f *StateFile) append() (bytes int64, err error) {
	name, flags := f.path+logSuffix, os.O_WRONLY
	if f.logged == 0 {
		_ = os.Remove(name)
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if f.logged == 0 {
		f.logged = logHead
		if _, err := file.Write(binary.LittleEndian.AppendUint32([]byte("WHSL"), f.link)); err != nil {
			return 0, err
		}
	}
	at := f.logged
	if _, err := file.Seek(at+4, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := f.writeTo(file, f.written); err != nil {
		return 0, err
	}
	end, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	// The length comes last: a part that is not whole has none.
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(end-at-4)), at); err != nil {
		return 0, err
	}
	f.logged, err = closeWritten(file)
	return f.whole + f.logged, err
}

// closeWritten has a file's bytes written to the disk, and returns their number.
func closeWritten(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	return info.Size(), file.Close()
}

// sum returns a checksum of the pools and their workers. A log is of the same ones as its file.
func (f *StateFile) sum(now time.Time) uint32 {
	f.mu.Lock()
	pools := slices.Clone(f.pools)
	f.mu.Unlock()
	var w writer
	for _, p := range pools {
		secret := p.pool.Secret()
		w.bytes(p.name)
		w.fixed(modelsSum(p.models()))
		w.b = append(w.b, secret[:]...)
		w.fixed(sum(named(p.pool, secret, now)))
	}
	return crc32.Checksum(w.b, castagnoli)
}

// writeTo writes what was used since a time, and returns the checksum at its end.
func (f *StateFile) writeTo(file io.Writer, since time.Time) (uint32, error) {
	f.mu.Lock()
	pools := slices.Clone(f.pools)
	f.mu.Unlock()
	out := bufio.NewWriterSize(file, 1<<16) // it keeps the first error
	sum := crc32.New(castagnoli)
	s := stateWriter{at: time.Now(), since: since, to: io.MultiWriter(out, sum)}
	workers := 0
	for _, p := range pools {
		workers += len(p.pool.Workers.Stats(s.at))
	}
	s.head(len(pools))
	for _, p := range pools {
		s.pool(p.name, modelsSum(p.models()), p.pool, maxState/max(1, workers))
	}
	_, _ = out.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return sum.Sum32(), out.Flush()
}
