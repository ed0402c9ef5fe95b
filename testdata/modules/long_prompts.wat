;; wp_pick traps for prompts of over 1,000 tokens: refused at load, as by warmpath plugin check.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1064 i32.load i32.const 1001 i32.lt_u if i64.const 0 return end
    unreachable)
)
