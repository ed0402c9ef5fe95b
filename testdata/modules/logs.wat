;; wp_pick writes lines to the log without an end: the eleventh and those after it are dropped, and all are paid for.
(module
  (import "warmpath_v1" "log" (func $log (param i32 i32 i32)))
  (data (i32.const 0) "a line that nobody wants to read a million times")
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop i32.const 2 i32.const 0 i32.const 48 call $log br 0 end
    unreachable)
)
