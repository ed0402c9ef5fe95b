;; A strategy of ABI 1.2, whose frame has a header of 264 bytes and rows of 184: it traps on any other, and unless each row
;; begins with its index (Worker) and has one more behind it (Key). It chooses the last row, then row 0. Not faulty.
(module
  (memory (export "memory") 4)
  (global $rows (mut i32) (i32.const 0))
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) local.get 0 global.set $rows i32.const 1024)
  (func (export "wp_pick") (result i64)
    (local $i i32) (local $row i32)
    i32.const 1024 i32.load i32.const 0x10002 i32.ne if unreachable end      ;; Version
    i32.const 1028 i32.load i32.const 264 i32.ne if unreachable end          ;; HeaderBytes
    i32.const 1032 i32.load i32.const 184 i32.ne if unreachable end          ;; RowBytes
    i32.const 1288 local.set $row
    loop
      local.get $row i32.load local.get $i i32.ne if unreachable end
      local.get $row i32.const 112 i32.add i32.load local.get $i i32.const 1 i32.add i32.ne if unreachable end
      local.get $row i32.const 184 i32.add local.set $row
      local.get $i i32.const 1 i32.add local.tee $i
      i32.const 1036 i32.load i32.lt_u br_if 0                               ;; Rows
    end
    i32.const 1144 i32.const 1 i32.store                                     ;; OrderLen
    i32.const 1288 global.get $rows i32.const 184 i32.mul i32.add            ;; order area
    i32.const 0 i32.store
    local.get $i i32.const 1 i32.sub i64.extend_i32_u)
)
