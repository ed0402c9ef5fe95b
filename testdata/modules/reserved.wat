;; Exports a global of its own under the host's name for fuel.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (global (export "warmpath:fuel") (mut i64) (i64.const 0))
  (func (export "wp_pick") (result i64) i64.const 0)
)
