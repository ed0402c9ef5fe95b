// The frame of a strategy, and what connects it to the host: warmpath's ABI 1.2. "warmpath plugin new" wrote this file; a
// later version of warmpath still runs what is built with it. The whole contract: docs/abi.md of warmpath
#ifndef WARMPATH_H
#define WARMPATH_H

#include <stdint.h>

@STRUCTURES@
enum {
  WP_MAX_WORKERS = 4096,
  WP_DECLINE = -1, // in place of a worker: the host's fallback answers
  WP_REJECT = -2,  // in place of a worker: the client is turned away, see reject_status
  WP_HOLD = -3,    // in place of a worker: the request waits for a better one, see hold_millis
};

// The strategy: it answers with wp_to. workers has request->rows entries, at least one.
uint64_t route(struct wp_header *request, const struct wp_row *workers);

// wp_to is the answer: a worker's index, WP_DECLINE, WP_REJECT or WP_HOLD, and a reason: 0, or a code of your own, which people see
// as its number, or by the name that the export wp_reasons gives it.
static inline uint64_t wp_to(int32_t worker, uint16_t reason) { return (uint64_t)reason << 32 | (uint32_t)worker; }

// wp_only keeps the request to the worker of an answer and those of wp_then: nobody else gets it, whatever fails.
static inline uint64_t wp_only(uint64_t answer) { return answer | (uint64_t)2 << 48; }

#ifdef __wasm__

#define WP_EXPORT(name) __attribute__((export_name(name)))
#define WP_IMPORT(name) __attribute__((import_module("warmpath_v1"), import_name(name)))

// wp_own sets the strategy's own number for the worker of that key, which all its instances then read as own of the row;
// from a callback wp_own_of reads it.
WP_IMPORT("own") int32_t wp_own(uint64_t key, double value);
WP_IMPORT("own_of") double wp_own_of(uint64_t key);

static struct {
  struct wp_header header;
  struct wp_row rows[WP_MAX_WORKERS];
  uint32_t order[WP_MAX_WORKERS];
} wp_area;

static uint32_t wp_rows;

WP_EXPORT("warmpath_abi_1_2") void wp_marker(void) {}

WP_EXPORT("wp_frame") void *wp_frame(uint32_t max_workers) {
  if (max_workers > WP_MAX_WORKERS)
    __builtin_trap();
  wp_rows = max_workers;
  return &wp_area;
}

WP_EXPORT("wp_pick") uint64_t wp_pick(void) {
  if (wp_area.header.rows == 0 || wp_area.header.rows > wp_rows)
    return wp_to(WP_DECLINE, 0);
  return route(&wp_area.header, wp_area.rows);
}

// wp_then names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer says only.
static inline void wp_then(uint32_t worker) {
  uint32_t *order = (uint32_t *)&wp_area.rows[wp_rows];
  order[wp_area.header.order_len++] = worker;
}

#else // the native test: no export has a name, an import is a function that the test has, and nobody asks for alternatives

#define WP_EXPORT(name)
#define WP_IMPORT(name)

static inline void wp_then(uint32_t worker) { (void)worker; }

#endif
#endif
