;; wp_pick computes 400 square roots a turn, each on the one before: a loop header alone would price them at 1 fuel.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (global $x (mut i64) (i64.const 0))
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop
      f64.const 2
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt f64.sqrt
      i64.reinterpret_f64 global.set $x
      br 0
    end
    unreachable)
)
