;; wp_frame gives another address each time, and wp_pick reads where the frame was first: once the fleet outgrows 64 rows it
;; goes by an old frame. It chooses the last row that it sees, which exists, and nobody's memory but its own was read.
(module
  (memory (export "memory") 2)
  (global $at (mut i32) (i32.const -15360))
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32)
    global.get $at i32.const 16384 i32.add global.set $at
    global.get $at)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i64.load32_u i64.const 1 i64.sub)
)
