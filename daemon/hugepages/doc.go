// Package hugepages has the kernel hold this process's Go heap in huge pages.
//
// A request touches memory all over the heap: the index, the ring of decisions, the workers' counts. With pages of
// 4 KB nearly each of these touches also looks a page's address up, in a virtual machine through two tables. Go leaves
// the choice of pages to the kernel, and most distributions' kernels give huge pages to those alone who ask for them.
//
// [Run] asks, with MADV_COLLAPSE (Linux 6.1), for each stretch of the heap that is in memory as a whole: so it takes no
// more memory. A stretch is asked for once. What Go gives back of it later stays given back, and the kernel is told
// nothing that would have it fill such holes again.
//
// # What lost
//
// MADV_HUGEPAGE: the kernel then fills a stretch of which Go uses a page, and may fill it again after Go has given the
// rest back; and a request that touches new memory may wait until the kernel has found a huge page.
package hugepages
