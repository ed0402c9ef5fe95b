;; The smallest strategy of ABI 1.2 that answers: row Seq mod Rows, reason 9. Not faulty: the benchmarks' floor.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1040 i64.load           ;; Seq
    i32.const 1036 i64.load32_u       ;; Rows
    i64.rem_u
    i64.const 0x9_0000_0000 i64.or)
)
