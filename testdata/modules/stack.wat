;; wp_pick recurses without an end, with a wide frame: the stack must not grow without a bound.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func $deep (param i64 i64 i64 i64) (result i64) (local i64 i64 i64 i64 i64 i64 i64 i64)
    local.get 0 local.get 1 local.get 2 local.get 3 call $deep
    local.get 4 i64.add)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    i64.const 1 i64.const 2 i64.const 3 i64.const 4 call $deep)
)
