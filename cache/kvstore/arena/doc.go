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
// why.md has the reasons and the details, and what lost.
package arena
