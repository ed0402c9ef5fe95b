;; wp_wants asks for wp_on_complete, which is not exported.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_wants") (result i32) i32.const 9)
  (func (export "wp_pick") (result i64) i64.const 0)
)
