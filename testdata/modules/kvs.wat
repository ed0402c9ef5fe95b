;; wp_pick sets another key of the store each time, without an end: each set is paid for, and the store has a quota.
(module
  (import "warmpath_v1" "kv_cas" (func $cas (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) (local $i i32)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop
      i32.const 64 local.get $i i32.store
      i32.const 64 i32.const 4 i32.const 0 i32.const 0 i32.const 64 i32.const 512 i32.const 0 call $cas drop
      local.get $i i32.const 1 i32.add local.set $i
      br 0
    end
    unreachable)
)
