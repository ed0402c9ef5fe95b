// Package spill is a disk behind a kvstore.Store: values are written there soon after they were put, so that what
// memory evicts is not lost, and a restart finds them.
//
// # How do they lie on the disk?
//
// In segments, files of an eighth of Config.MaxBytes that are only appended to. When there are too many, the oldest
// goes with all that is in it. A record is a header of 36 bytes and the key, up to the next 4096 bytes, and the value,
// up to the next 4096 again:
//
//	0 "wpk2"  4 state: 1 live, 0 dead  8 length of the key  12 of the value  20 end in Unix ns, 0 = none
//	28 CRC-32C of key and value  32 CRC-32C of the header with state 1 and this 0, and of the key
//
// little-endian. A start reads the headers. One that is torn, as the machine stopped while it was written, ends its
// segment; a value whose bytes are not what its checksum says is a miss. Both are counted. A deleted or replaced
// value is marked dead in place, which needs no room on a full disk.
//
// # Why past the page cache?
//
// Values are written and read direct (O_DIRECT) where the file system can do that, in steps of a megabyte, and through
// the page cache elsewhere. Memory is the cache already: the kernel's would hold each value a second time, and write it
// when it likes. What is marked dead is one byte, and goes through the cache.
//
// # What if the disk is slow, or full?
//
// Nobody waits for it. A value is written as long as it is leased, up to Config.MaxQueue bytes at a time; what comes
// faster is skipped and counted. An error stops writing for five seconds and is logged; clients see none of it. What
// was skipped is offered again when memory is about to evict it (TestSpillAtEviction); not before, as memory has it.
//
// A disk with less room than Config.MaxBytes is found out by its error: what the files have then is the limit, the
// oldest segment goes, and the value is written (TestFullDisk). Every ten minutes the limit goes up by an eighth.
//
// # What becomes of a promised value whose segment goes?
//
// Its bytes are saved in memory until its promises are over, up to Config.MaxQueue bytes of such values. A segment with
// more of them stays, and the next one goes in its place (TestPromisesFillTheDisk).
//
// What becomes of a value whose time is over? It is a miss at once, and forgotten when its key is looked at, a thousand
// a second. Its room goes with its segment.
//
// What lost: a file a value, which is two files for each of LMCache's chunks and a folder of a hundred thousand; to
// write when memory evicts, which makes a put wait for the disk.
package spill
