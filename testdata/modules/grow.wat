;; wp_pick grows its memory by a page until that is refused, and then traps: memory, within the limit.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop i32.const 1 memory.grow i32.const -1 i32.ne br_if 0 end
    unreachable)
)
