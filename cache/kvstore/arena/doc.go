// Package arena is one piece of memory of a fixed size, with a map of its free parts. A value's place is a list of
// extents. Memory is anonymous, or a file in /dev/shm that workers on the same machine map and read in place.
//
// # How is free memory found?
//
// Memory is cut into pages of 64 KiB, and a bitmap marks the free ones. A value takes whole pages, as one run where
// there is one near, else as several. Since any free page will do, no arena is ever too fragmented for a value that it
// has the bytes for. The rest after whole pages, up to 32 KiB, takes a slot in a page of slots of one size. So
// LMCache's metadata of 28 bytes takes 64, and 1 MiB behind 28 bytes of metadata takes 64 bytes more than 1 MiB.
// TestFragmentation measures it: 94 to 99 % of an arena holds values.
//
// What lost: one run of pages a value. With 1, 4 and 16 MiB in one arena and evictions at random a value is in 5 pieces
// on average; the arena would have had to evict for each missing run. Powers of two: 1 MiB behind 28 bytes of metadata
// would take two.
//
// # Why is the segment there in full from the start?
//
// LMCache maps it once, whole, and never checks it again. So it has one inode for life, with all of its pages allocated
// (fallocate): if the tmpfs filled up later, the kernel would kill a process that touches a missing page. A worker on
// Python before 3.13 deletes the name when it exits. A second name, ".NAME.warmpath", holds the inode, and Tend
// restores the first.
//
// # What becomes of it at the end?
//
// A restart takes up the same inode, since workers still have it mapped; Attached reports such workers. If there are
// none, Close removes both names, and a start with another size makes a new segment. A write lease (fcntl F_SETLEASE)
// shows whether there are any: the kernel grants it only on a file that no other process has open or mapped.
//
// A killed daemon leaves its segment. Its next start takes that up. A start with another name, or without a segment,
// frees it, unless a process has it (TestOrphans).
//
// golang.org/x/sys is the Go project's, BSD-3-Clause: syscall has no fallocate, flock with errors by name, or linkat.
package arena
