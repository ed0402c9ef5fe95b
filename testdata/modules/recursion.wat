;; wp_pick calls itself twice without a loop: fib(60) ends by fuel, charged at each function entry.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func $fib (param i32) (result i64)
    local.get 0 i32.const 2 i32.lt_u if (result i64)
      i64.const 1
    else
      local.get 0 i32.const 1 i32.sub call $fib
      local.get 0 i32.const 2 i32.sub call $fib
      i64.add
    end)
  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    i32.const 60 call $fib)
)
