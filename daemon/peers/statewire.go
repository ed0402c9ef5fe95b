package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// A state file holds one router's view of its workers' caches:
//
//	"WHST" | version | text version | time i64 | count uvarint, of each a pool | CRC-32C u32 of all before it
//
// The time is when the file was begun, in microseconds since 1970. A pool is:
//
//	name | models u64 | secret [32] | tokens in a byte of text f32
//	seconds of prefill a token f32, samples of it uvarint
//	requests noted uvarint, tokens of them that were new f32, 64 times: tokens requested again after such a time f32
//	count, of each worker: key u64, address u64, tokens of KV cache uvarint, start of its process u64 (Unix seconds),
//	  times the fleet's seconds f32, samples of it f32
//	frame..., each after its length u32; a length of 0 ends them
//
// A frame has the form of wire.go, holds answers and lost caches alone, and is of the time of the file. Numbers, names
// and counts are written as there.
//
// Its log has what changed since. It begins with "WHSL" and the checksum at the end of the file, and then has parts,
// each after its length u32. A part is as a file, with the chains that were used since the part before, and before
// them the workers whose caches were lost.
const (
	logSuffix    = ".log"
	logHead      = 8
	stateVersion = 2
	stateHead    = 4 + 1 + 1 + 8
	// maxState bounds the file: 32 million blocks, which are a billion tokens of text.
	maxState = 256 << 20
	// maxStateAge is the age from which a file is refused: workers' caches turn over in minutes.
	maxStateAge = time.Hour
	// stateFrame is the size to which frames grow. A chain that does not fit into maxFrame is cut.
	stateFrame    = 256 << 10
	maxStateChain = (maxFrame - stateFrame - 64) / 8
)

// Errors of a file that is refused; each ends with the remedy.
var (
	errNoState    = errors.New("it is no state file of warmpath; name a file of its own in server.state_file")
	errStateCut   = errors.New("its checksum is wrong: it was cut or changed; nothing need be done, it is written anew")
	errStateOther = errors.New("another release of warmpath wrote it; nothing need be done, it is written anew")
)

// state is the content of a file.
type state struct {
	at    time.Time
	pools []savedPool
	later *state // the next part of the log
}

// newest returns the last part of a file and its log.
func (s *state) newest() *state {
	for s.later != nil {
		s = s.later
	}
	return s
}

// pool returns the pool of that name, nil if there is none.
func (s *state) pool(name string) *savedPool {
	i := slices.IndexFunc(s.pools, func(p savedPool) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &s.pools[i]
}

type savedPool struct {
	name       string
	models     uint64
	secret     route.Secret
	experience route.Experience
	workers    []savedWorker
	frames     [][]byte
}

type savedWorker struct {
	key, address uint64
	learnt       route.Learnt
}

// logParts returns the whole parts of a log, and how many bytes follow them. A log of another file has none.
func logParts(log, file []byte) (parts [][]byte, cut int) {
	if len(log) < logHead || len(file) < sumBytes || string(log[:4]) != "WHSL" ||
		string(log[4:logHead]) != string(file[len(file)-sumBytes:]) {
		return nil, 0
	}
	r := reader{b: log[logHead:]}
	for len(r.b) > 0 {
		left := len(r.b)
		n := r.length()
		if n < stateHead+sumBytes || n > len(r.b) ||
			crc32.Checksum(r.b[:n-sumBytes], castagnoli) != binary.LittleEndian.Uint32(r.b[n-sumBytes:n]) {
			return parts, left
		}
		parts = append(parts, r.b[:n])
		r.b = r.b[n:]
	}
	return parts, 0
}

// readStates decodes a file and the parts of its log. The last of them must not be too old.
func readStates(parts [][]byte, now time.Time) (first *state, err error) {
	at := &first
	for i, b := range parts {
		asOf := now
		if i < len(parts)-1 && len(b) >= stateHead {
			asOf = time.UnixMicro(int64(binary.LittleEndian.Uint64(b[6:])))
		}
		*at, err = readState(b, asOf)
		if err != nil {
			return nil, err
		}
		at = &(*at).later
	}
	return first, nil
}

// readState decodes a file. now is for the check of its age.
func readState(b []byte, now time.Time) (*state, error) {
	if len(b) < 4 || string(b[:4]) != "WHST" {
		return nil, errNoState
	}
	if len(b) < stateHead+sumBytes {
		return nil, errStateCut
	}
	body, sum := b[:len(b)-sumBytes], b[len(b)-sumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, errStateCut
	}
	if b[4] != stateVersion || b[5] != prompt.TextVersion {
		return nil, errStateOther
	}
	s := &state{at: time.UnixMicro(int64(binary.LittleEndian.Uint64(b[6:])))}
	if age := now.Sub(s.at); age > maxStateAge || age < -time.Minute {
		return nil, fmt.Errorf("it is of %s, %v ago; at most %v are believed. Nothing need be done, it is written anew",
			s.at.Format(time.RFC3339), age.Round(time.Second), maxStateAge)
	}
	r := reader{b: body[stateHead:]}
	for range r.count(1) {
		s.pools = append(s.pools, r.pool())
	}
	if r.bad || len(r.b) > 0 {
		return nil, errStateCut
	}
	return s, nil
}

func (r *reader) pool() (p savedPool) {
	p.name, p.models = r.bytes(), r.fixed()
	for i := range p.secret {
		p.secret[i] = r.byte()
	}
	e := &p.experience
	e.TokensPerByte = r.float()
	e.Speed.Seconds, e.Speed.Samples = r.float(), r.upTo(math.MaxInt32)
	e.Reuse.Noted, e.Reuse.New = r.upTo(math.MaxInt32), r.float()
	for i := range e.Reuse.Again {
		e.Reuse.Again[i] = r.float()
	}
	for range r.count(33) {
		w := savedWorker{key: r.fixed(), address: r.fixed()}
		w.learnt = route.Learnt{KVTokens: r.upTo(maxTokens), Process: float64(r.fixed())}
		w.learnt.Speed.Rel, w.learnt.Speed.Evidence = r.float(), r.float()
		p.workers = append(p.workers, w)
	}
	for !r.bad {
		n := r.length()
		if n == 0 {
			break
		}
		if n > len(r.b) {
			r.fail()
			break
		}
		p.frames = append(p.frames, r.b[:n])
		r.b = r.b[n:]
	}
	return p
}

// length reads the length of a frame.
func (r *reader) length() int {
	if len(r.b) < 4 {
		r.fail()
		return 0
	}
	n := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return int(n)
}

// stateWriter makes the bytes of a file, part by part.
type stateWriter struct {
	to io.Writer // which keeps its first error
	at time.Time

	since time.Time // chains that were used before are left out
}

func (s *stateWriter) put(b []byte) { _, _ = s.to.Write(b) }

func (s *stateWriter) head(pools int) {
	b := append([]byte("WHST"), stateVersion, prompt.TextVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.at.UnixMicro()))
	s.put(binary.AppendUvarint(b, uint64(pools)))
}

// pool writes a pool, with at most most bytes for each worker, the newest chains first.
func (s *stateWriter) pool(name string, models uint64, p *route.Pool, most int) {
	secret := p.Secret()
	var w writer
	w.bytes(name)
	w.fixed(models)
	w.b = append(w.b, secret[:]...)
	e := p.Experience()
	w.float(e.TokensPerByte)
	w.float(e.Speed.Seconds)
	w.uint(uint64(min(e.Speed.Samples, math.MaxInt32)))
	w.uint(uint64(min(e.Reuse.Noted, math.MaxInt32)))
	w.float(e.Reuse.New)
	for _, tokens := range e.Reuse.Again {
		w.float(tokens)
	}
	workers := named(p, secret, s.at)
	w.uint(uint64(len(workers)))
	for _, n := range workers {
		l := p.Learnt(n.Key)
		w.fixed(n.Key)
		w.fixed(n.Address)
		w.uint(uint64(max(0, l.KVTokens)))
		w.fixed(uint64(max(0, l.Process) + 0.5))
		w.float(l.Speed.Rel)
		w.float(l.Speed.Evidence)
	}
	s.put(w.b)
	f := stateFrames{stateWriter: s, chains: newChains(), mark: secret.Fingerprint()}
	f.begin()
	for _, key := range p.TakeForgotten() {
		f.w.kind(kindForgotten)
		f.w.known(&f.w.workers, key)
	}
	for _, st := range p.Workers.Stats(s.at) {
		f.worker(p, st.Slot, st.ID, most)
	}
	f.end()
	s.put([]byte{0, 0, 0, 0})
}

// stateFrames writes a pool's frames.
type stateFrames struct {
	*stateWriter
	w      writer
	chains *chains
	mark   uint64
	number uint64
}

func (f *stateFrames) begin() {
	f.number++
	f.w.begin(&head{version: wireVersion, text: prompt.TextVersion, mark: f.mark, sender: 1, number: f.number}, f.at)
}

func (f *stateFrames) end() {
	frame := seal(f.w.b, f.at, f.at, false)
	f.put(binary.LittleEndian.AppendUint32(nil, uint32(len(frame))))
	f.put(frame)
}

func (f *stateFrames) worker(p *route.Pool, slot uint32, id string, most int) {
	key, asOf := worker.KeyOf(id), time.Now()
	p.Index.Each(slot, func(space uint64, chain []uint64, ago time.Duration) bool {
		chain = chain[:min(len(chain), maxStateChain)]
		if asOf.Add(-ago).Before(f.since) { // and so were all that follow
			return false
		}
		if most < 8*len(chain)+64 { // at most
			return false
		}
		before := len(f.w.b)
		f.w.kind(kindAnswer)
		f.w.uint(0)
		f.w.known(&f.w.workers, key)
		f.w.known(&f.w.spaces, space)
		f.w.time(asOf.Add(-min(ago, 20*time.Hour)))
		f.w.linkedChain(f.chains, chain, position{})
		most -= len(f.w.b) - before
		if len(f.w.b) >= stateFrame {
			f.end()
			f.begin()
		}
		return true
	})
}

// modelsSum returns a hash of the models: another list has another sum.
func modelsSum(models []string) uint64 {
	sorted := slices.Clone(models)
	slices.Sort(sorted)
	var w writer
	for _, m := range sorted {
		w.bytes(m)
	}
	return uint64(crc32.Checksum(w.b, castagnoli))
}
