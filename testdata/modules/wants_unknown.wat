;; wp_wants asks for what no version has.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_wants") (result i32) i32.const 0x100001)
  (func (export "wp_pick") (result i64) i64.const 0)
)
