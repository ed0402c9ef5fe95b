// Kvtorture torments the KV cache: random puts, gets, leases and deletions at both listeners of running daemons, while
// clients break off in the middle of a command or are killed, daemons are killed and started again over their spilled
// values, and the disk is full now and then. Values replace, evict and spill each other all the time.
//
//	make build && testdata/run bench/torture -bin bin/warmpath -for 10m
//
// Each value says its key and its version, and all of its bytes follow from these two. What is read must be the
// version that was acknowledged last under that key, or one that was being put. After a kill of the daemon it may be
// an older one that the disk had. In the end nothing is leased or promised any more, and the memory and the
// descriptors of the daemons are as many as when their last life began. It prints one JSON line, and exits with 1 if
// something is wrong.
//
// The disk is a tmpfs of 96 MiB for 256 MiB of spilled values, which takes the right to mount. Without it, as the line
// says, the disk is never full.
package main
