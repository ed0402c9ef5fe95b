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
// why.md has the reasons and the details, and what lost.
package spill
