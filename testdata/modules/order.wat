;; wp_pick forges the order: a length of 4 billion, indexes out of range, repeats, the chosen row itself.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    i32.const 1144 i32.const -1 i32.store                ;; OrderLen
    i32.const 9344 i32.const 2 i32.store                 ;; order area: 1024 + 128 + 64 rows * 128
    i32.const 9348 i32.const 2 i32.store
    i32.const 9352 i32.const 0x7fff_ffff i32.store
    i32.const 9356 i32.const 1 i32.store
    i64.const 1)
)
