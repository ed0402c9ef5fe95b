;; As hostcalls, through a table: the price is taken by the import, not where it is called.
(module
  (import "warmpath_v1" "log_level" (func $level (result i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (table 1 funcref)
  (elem (i32.const 0) $level)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop i32.const 0 call_indirect (result i32) drop br 0 end
    unreachable)
)
