;; wp_pick takes row 0, and asks that the conversation is kept in its worker's cache for 20 s.
(module
  (import "warmpath_v1" "cache" (func $cache (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_3"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 0 i32.const 0 i32.const 20000 i32.const 0 i32.const 0 call $cache drop
    i64.const 0)
)
