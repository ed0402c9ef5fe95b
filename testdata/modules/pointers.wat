;; wp_pick gives imports addresses and lengths outside of its memory, which they answer with an errno, and then reads there
;; itself, which traps.
(module
  (import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
  (import "warmpath_v1" "error" (func $error (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    i32.const 2 i32.const 0 i32.const 0x7fff_fff0 i32.const 100 call $str drop
    i32.const 6 i32.const 0x7fff_ffff i32.const -4 i32.const -1 call $str drop
    i32.const -1 i32.const -1 call $error
    i32.const -4 i64.load)
)
