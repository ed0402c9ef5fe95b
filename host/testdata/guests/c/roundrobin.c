// Round robin in C, without the SDK: the contract of sdk/abi needs nothing but core wasm. Build it with
//
//   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,--strip-all -o roundrobin.wasm roundrobin.c
//
// The result is below 1 KB and imports nothing. The memory is exported by the linker's default.

typedef unsigned int u32;
typedef unsigned long long u64;

#define EXPORT(name) __attribute__((export_name(name)))

enum { LARGEST = 1024, MAX = 4096, REASON_TURN = 9 };

// Header, rows and order area, by the offsets in sdk/abi. The header has the bytes of itself and of a row; there is room for
// larger ones.
static u64 frame[(LARGEST + MAX * (LARGEST + 4)) / 8];
static u32 max_rows;

#define U32(offset) (*(u32 *)((char *)frame + (offset)))
#define U64(offset) (*(u64 *)((char *)frame + (offset)))

EXPORT("warmpath_abi_1_3") void marker(void) {}

EXPORT("wp_frame") void *wp_frame(u32 max_workers) {
  if (max_workers > MAX)
    __builtin_trap();
  max_rows = max_workers;
  return frame;
}

EXPORT("wp_pick") u64 wp_pick(void) {
  u32 header = U32(4), row = U32(8), rows = U32(12);
  if (U32(0) >> 16 != 1 || header > LARGEST || row > LARGEST || rows == 0 || rows > max_rows)
    return 0xffffffffu; // decline
  u32 turn = (u32)(U64(16) % rows);
  u32 order = header + max_rows * row;
  u32 n = rows - 1 < 3 ? rows - 1 : 3;
  for (u32 i = 0; i < n; i++)
    U32(order + 4 * i) = (turn + 1 + i) % rows;
  U32(120) = n;
  return (u64)REASON_TURN << 32 | turn;
}
