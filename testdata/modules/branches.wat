;; wp_pick jumps by a table of eight targets that no processor can foresee: 1,000,000 fuel of it take some hundred times as
;; long as of an empty loop, if the price did not go by what a jump costs.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_0"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) (local $i i32)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
    loop
      local.get $i i32.const 1103515245 i32.mul i32.const 12345 i32.add local.set $i
      block block block block block block block block
        local.get $i i32.const 16 i32.shr_u i32.const 7 i32.and br_table 0 1 2 3 4 5 6 7
      end end end end end end end end
      br 0
    end
    unreachable)
)
