;; As flood, but 32 copies in a row in each turn, and no loop header between them.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      i32.const 0 i32.const 32768 i32.const 32768 memory.copy
      br 0
    end
    unreachable)
)
