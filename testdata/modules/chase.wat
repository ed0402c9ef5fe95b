;; wp_pick follows pointers at random through 16 MiB: each load waits for the one before, and for memory that is in no cache.
(module
  (memory (export "memory") 256 256)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "_initialize") (local $i i32)
    loop $fill
      local.get $i
      local.get $i i32.const 64 i32.div_u i32.const 166661 i32.mul i32.const 12345 i32.add i32.const 262143 i32.and i32.const 64 i32.mul
      i32.store
      local.get $i i32.const 64 i32.add local.tee $i i32.const 16777216 i32.lt_u br_if $fill
    end
    i32.const 1024 i32.const 0 i32.const 256 memory.fill)
  (func (export "wp_pick") (result i64) (local $i i32)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    i32.const 65536 local.set $i
    loop
      local.get $i i32.load i32.load i32.load i32.load i32.load i32.load i32.load i32.load
      i32.load i32.load i32.load i32.load i32.load i32.load i32.load i32.load i32.const 65536 i32.or local.set $i
      br 0
    end
    unreachable)
)
