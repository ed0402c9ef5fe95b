;; Has a SIMD instruction, which the meter cannot price.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) i32.const 1 i32x4.splat drop i64.const 0)
)
