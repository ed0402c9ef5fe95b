package spill

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"time"
)

const (
	headerBytes = 36
	magic       = "wpk2"
	live        = 1
	dead        = 0
	stateAt     = 4
	maxKey      = 64 << 10 // of a header: more means that the header is not ours

	block = 4096 // alignment of headers and values, and of direct reads and writes, in the file and in memory
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the header of a value, with its key.
type record struct {
	state   byte
	key     string
	size    int64
	expires time.Time
	sum     uint32 // of key and value
}

// head returns the length of the header and the key, which is the offset of the value.
func (r *record) head() int64 { return roundUp(headerBytes + int64(len(r.key))) }

// bytes returns the length of the record and its value.
func (r *record) bytes() int64 { return r.head() + roundUp(r.size) }

func (r *record) over(now time.Time) bool { return !r.expires.IsZero() && !now.Before(r.expires) }

// encode returns the header and the key.
func (r *record) encode() []byte {
	b := make([]byte, headerBytes, headerBytes+len(r.key))
	copy(b, magic)
	b[stateAt] = live
	binary.LittleEndian.PutUint32(b[8:], uint32(len(r.key)))
	binary.LittleEndian.PutUint64(b[12:], uint64(r.size))
	if !r.expires.IsZero() {
		binary.LittleEndian.PutUint64(b[20:], uint64(r.expires.UnixNano()))
	}
	binary.LittleEndian.PutUint32(b[28:], r.sum)
	b = append(b, r.key...)
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b, castagnoli))
	b[stateAt] = r.state
	return b
}

var (
	errTorn    = errors.New("spill: the record is torn")
	errDamaged = errors.New("spill: the header is damaged")
)

// decode reads the record at an offset of a file with end bytes. It returns errTorn for a whole header whose value is
// cut off.
func decode(f io.ReaderAt, at, end int64) (r record, err error) {
	b := make([]byte, headerBytes)
	if _, err := f.ReadAt(b, at); err != nil {
		return r, errDamaged
	}
	n := binary.LittleEndian.Uint32(b[8:])
	size := binary.LittleEndian.Uint64(b[12:])
	if string(b[:4]) != magic || n > maxKey {
		return r, errDamaged
	}
	b = append(b, make([]byte, n)...)
	if _, err := f.ReadAt(b[headerBytes:], at+headerBytes); err != nil {
		return r, errDamaged
	}
	r = record{state: b[stateAt], key: string(b[headerBytes:]), size: int64(size), sum: binary.LittleEndian.Uint32(b[28:])}
	if ns := int64(binary.LittleEndian.Uint64(b[20:])); ns != 0 {
		r.expires = time.Unix(0, ns)
	}
	sum := binary.LittleEndian.Uint32(b[32:])
	b[stateAt] = live
	clear(b[32:36])
	switch {
	case crc32.Checksum(b, castagnoli) != sum:
		return r, errDamaged
	case size > uint64(end) || at+r.bytes() > end:
		return r, errTorn
	}
	return r, nil
}

// sumOf returns the checksum of a key and its value.
func sumOf(key string, pieces [][]byte) uint32 {
	sum := crc32.Checksum([]byte(key), castagnoli)
	for _, p := range pieces {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

func roundUp(n int64) int64 { return (n + block - 1) / block * block }
