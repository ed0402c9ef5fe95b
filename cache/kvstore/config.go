package kvstore

import (
	"errors"
	"log/slog"
	"os"
	"time"
)

// Config sets how much memory a store has and what it does when that is full.
type Config struct {
	MaxBytes int64         // of memory in all; a part in recordShare is for keys and records, the rest for values
	MaxValue int64         // a longer value is refused; default 128 MiB, and never more than the arena
	Policy   string        // "lru" (default), "s3fifo" or "fifo"; see package evict
	Segment  string        // name of the arena in /dev/shm; "" (default) = memory of this process alone
	Mode     os.FileMode   // of the segment; default 0660
	Quiet    time.Duration // no put for so long after a start if workers still have the segment mapped: their leases run
	Disk     Backing       // of this machine, read for keys that are not in memory; nil (default) = none
	Far      Backing       // read for keys that are not on this machine; nil (default) = none
	Noted    Noted         // called for each put, before anybody can read the value; nil (default) = none
	Losses   *Losses       // notes the keys that leave the memory; nil (default) = none
	Log      *slog.Logger  // default slog.Default()
}

// Noted is called for each value that is put, with its key, its size and its first bytes, up to 28, which it must not
// keep. It must not wait, nor call the store.
type Noted func(key string, size int64, head []byte)

const (
	// MaxKey is the longest key. LMCache's have 60 to 200 bytes.
	MaxKey = 4 << 10

	defaultMaxValue = 128 << 20

	// recordShare: a record and its key take some 800 bytes, so values of 26 KB on average fill the arena before the
	// records. LMCache's have 1 MiB and more, with 28 bytes of metadata each.
	recordShare = 32

	// recordBytes is the memory of a value without its bytes and its key: the entry, its pin, its place in map and policy,
	// 448; and in the catalogue, 200.
	recordBytes = 648

	// MinBytes is the smallest store: one value of a megabyte and a few of metadata.
	MinBytes = 2 << 20
)

const (
	// lingerTime is from LMCache's lookup of a chunk, which is a lease, to the lease by which it reads: the lookups of
	// the chunks behind it are in between.
	lingerTime = 5 * time.Second

	lingerShare = 8 // of the arena: more values leave sooner
)

// Reasons for a refusal. The text is for the client that sent the value.
var (
	ErrTooLarge = errors.New("the value is larger than this cache takes")
	ErrKey      = errors.New("the key is empty or longer than 4096 bytes")
	ErrFull     = errors.New("the cache is full of values that are being read or promised")
	ErrWriting  = errors.New("other clients have half of the cache reserved for values that they are sending; try again")
	ErrQuiet    = errors.New("workers may still read what the last process leased to them; try again in a minute")
	ErrClosed   = errors.New("the cache is shutting down")
)

func (c Config) withDefaults() Config {
	if c.MaxValue <= 0 {
		c.MaxValue = defaultMaxValue
	}
	if c.Policy == "" {
		c.Policy = "lru"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
