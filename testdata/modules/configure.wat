;; wp_configure refuses whatever it is given, with errno -3, and says why.
(module
  (import "warmpath_v1" "error" (func $error (param i32 i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (data (i32.const 16) "no such knob")
  (func (export "wp_configure") (param i32) (result i32) i32.const 16 i32.const 12 call $error i32.const -3)
  (func (export "wp_pick") (result i64) i64.const 0)
)
