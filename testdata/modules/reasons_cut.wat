;; wp_reasons gives a pair that is cut short.
(module
  (memory (export "memory") 1)
  (data (i32.const 1024) "\03\00\00\00256\ff\00\00\00cut")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_reasons") (result i32) i32.const 14)
  (func (export "wp_pick") (result i64) i64.const 0)
)
