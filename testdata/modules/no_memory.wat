;; The memory is not exported.
(module
  (memory 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) i64.const 0)
)
