;; The start function calls an import for ever.
(module
  (import "warmpath_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func $spin loop i32.const 3 i32.const 0 i32.const 10 call $log br 0 end)
  (start $spin)
  (func (export "wp_pick") (result i64) i64.const 0)
)
