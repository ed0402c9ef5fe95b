;; wp_pick calls an import again and again.
(module
  (import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop i32.const 1 i32.const 0 i32.const 0 i32.const 0 call $str drop br 0 end
    unreachable)
)
