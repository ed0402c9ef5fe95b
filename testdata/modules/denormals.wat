;; wp_pick multiplies denormals: 1,000,000 fuel of it are some 50 ms on processors that have no fast way for them.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) (local $d f64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    f64.const 3e-320 local.set $d
    loop
      local.get $d f64.const 1.0000001 f64.mul f64.const 1.0000001 f64.mul f64.const 1.0000001 f64.mul f64.const 3e-320 f64.min local.set $d
      br 0
    end
    unreachable)
)
