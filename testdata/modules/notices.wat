;; Takes every notice and sums it up in the store, so that a test sees what came: "tick" the times, "first" the number of
;; outcomes, "complete" their output tokens, "event" the tokens of KV events. Not faulty.
(module
  (import "warmpath_v1" "kv_incr" (func $incr (param i32 i32 i64 i32) (result i64)))
  (memory (export "memory") 2)
  (data (i32.const 0) "tick....first...completeevent")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) i64.const 0)
  (func $sum (param $n i32) (param $at i32) (param $stride i32) (result i64)
    (local $all i64)
    loop
      local.get $n i32.eqz if local.get $all return end
      local.get $all local.get $at i64.load32_u i64.add local.set $all
      local.get $at local.get $stride i32.add local.set $at
      local.get $n i32.const 1 i32.sub local.set $n
      br 0
    end
    unreachable)
  (func (export "wp_tick") (param i64)
    i32.const 0 i32.const 4 local.get 0 i32.const 0 call $incr drop)
  (func (export "wp_on_first_token") (param i32)
    i32.const 8 i32.const 5 local.get 0 i64.extend_i32_u i32.const 0 call $incr drop)
  (func (export "wp_on_complete") (param i32)
    i32.const 16 i32.const 8 local.get 0 i32.const 1096 i32.const 96 call $sum i32.const 0 call $incr drop)
  (func (export "wp_on_kv_event") (param i32)
    i32.const 24 i32.const 5 local.get 0 i32.const 1068 i32.const 48 call $sum i32.const 0 call $incr drop)
)
