// Package arena is one piece of memory of a fixed size, and the map of what is free in it. A value's place is a list of
// extents. Memory is anonymous, or a file in /dev/shm that workers on the same machine map and read in place.
//
// # How is room found?
//
// Memory is cut into pages of 64 KiB, and a bitmap knows the free ones. A value takes whole pages, as one run where
// there is one near, else as several: since any free page will do, no arena is ever too fragmented for a value that it
// has the bytes for. What is left over after whole pages, up to 32 KiB, takes a slot in a page of slots of one size. So
// LMCache's metadata of 28 bytes costs 64, and 1 MiB behind 28 bytes of metadata costs 64 bytes more than 1 MiB.
// TestFragmentation measures it: 94 to 99 % of an arena holds values.
//
// What lost: one run of pages a value. With 1, 4 and 16 MiB in one arena and evictions at random a value lies in 5
// pieces on average; it would have had to evict for each run that is not there. Powers of two: 1 MiB behind 28 bytes of
// metadata would cost two.
//
// # Why is the segment there in full from the start?
//
// LMCache maps it once, whole, and never looks again. So it has one inode for life, with all of its pages taken
// (fallocate): a tmpfs that is full later would kill whoever touches a page. A worker on Python before 3.13 deletes the
// name when it exits. A second name, ".NAME.warmpath", holds the inode, and Tend puts the first one back.
//
// # What becomes of it at the end?
//
// A restart takes up the same inode, since workers still have it mapped; Attached says that somebody has. If nobody
// has, Close removes both names, and a start with another size makes the segment anew. The kernel knows who has it: it
// grants a write lease (fcntl F_SETLEASE) on a file that nobody else has open or mapped.
//
// A daemon that is killed leaves its segment. Its next start takes that up; a start with another name, or without a
// segment, gives it back, unless somebody has it (TestOrphans).
//
// golang.org/x/sys is the Go project's, BSD-3-Clause: syscall has no fallocate, flock with errors by name, or linkat.
package arena
