// Package spill is a disk behind a kvstore.Store. It writes values soon after they were put, so that a value that
// memory evicts is not lost, and a restart finds it.
//
// # What is on the disk?
//
// In segments, files of an eighth of Config.MaxBytes that are only appended to. When there are too many, the oldest is
// deleted with all its values. A record is a header of 36 bytes and the key, up to the next 4096 bytes, and the value,
// up to the next 4096 again:
//
//	0 "wpk2"  4 state: 1 live, 0 dead  8 length of the key  12 of the value  20 end in Unix ns, 0 = none
//	28 CRC-32C of key and value  32 CRC-32C of the header with state 1 and this 0, and of the key
//
// little-endian. A start reads the headers. A torn record, which the machine was writing when it stopped, ends its
// segment. A value with a damaged header or a wrong checksum is a miss. All are counted. A deleted or replaced value is
// marked dead in place, which needs no room on a full disk.
//
// # Why past the page cache?
//
// Values are written and read direct (O_DIRECT) where the file system supports that, in steps of a megabyte, and
// through the page cache elsewhere. Memory is the cache already: the kernel's would hold each value a second time, and
// write it at a time of its own. The mark of a dead record is one byte, and goes through the cache.
//
// # What if the disk is slow, or full?
//
// No caller waits for it. The disk leases the values that it has still to write, up to Config.MaxQueue bytes or one
// value; further values are skipped and counted. An error pauses writing for five seconds and is logged; clients notice
// nothing. Memory offers a skipped value again before it evicts it (TestSpillAtEviction); not earlier, as memory has
// it.
//
// On a disk with less room than Config.MaxBytes a write fails. Then the present size of the files becomes the limit,
// the oldest segment is deleted, and the value is written (TestFullDisk). Every ten minutes the limit goes up by an
// eighth.
//
// # What becomes of a promised value whose segment is deleted?
//
// Its bytes are saved in memory until its promises are over, up to Config.MaxQueue bytes of such values. A segment with
// more of them stays, and the next one is deleted in its place (TestPromisesFillTheDisk).
//
// An expired value is a miss at once. It leaves the index when its key is checked, a thousand keys a second, and the
// disk with its segment.
//
// What lost: a file a value, which is two files for each of LMCache's chunks and a folder of a hundred thousand; to
// write when memory evicts, which makes a put wait for the disk.
package spill
