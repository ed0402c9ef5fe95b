;; wp_wants asks for the host's own score and for none of the calls that are exported; chooses the row of the smallest Cost. Not
;; faulty.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_wants") (result i32) i32.const 1)
  (func (export "wp_tick") (param i64) unreachable)
  (func (export "wp_pick") (result i64)
    (local $i i32) (local $best i32) (local $row i32) (local $least i64)
    i32.const 1216 local.set $row                                   ;; 1024 + 192
    i64.const -1 local.set $least
    loop
      local.get $row i32.const 128 i32.add i64.load local.get $least i64.lt_u   ;; Cost: its bits sort as it does
      if
        local.get $row i32.const 128 i32.add i64.load local.set $least
        local.get $i local.set $best
      end
      local.get $row i32.const 160 i32.add local.set $row
      local.get $i i32.const 1 i32.add local.tee $i
      i32.const 1036 i32.load i32.lt_u br_if 0
    end
    local.get $best i64.extend_i32_u)
)
