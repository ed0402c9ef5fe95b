;; wp_on_complete traps, wp_on_first_token never ends, wp_tick is well: the instance goes, and picks go on with others.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_tick") (param i64))
  (func (export "wp_on_complete") (param i32) unreachable)
  (func (export "wp_on_first_token") (param i32) loop br 0 end)
  (func (export "wp_pick") (result i64) i64.const 0)
)
