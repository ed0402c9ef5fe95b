;; wp_maint loops when it is called the second time: discarded by the keeper.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (global $n (mut i32) (i32.const 0))
  (func (export "wp_maint")
    global.get $n i32.const 1 i32.add global.set $n
    global.get $n i32.const 2 i32.lt_u if return end
    loop br 0 end)
  (func (export "wp_pick") (result i64) i64.const 0)
)
