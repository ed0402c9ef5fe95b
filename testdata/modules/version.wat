;; One version of a strategy, known by three things: its bytes, the row it chooses ($version mod Rows), and what it calls
;; its reason. An odd one wants the host's score of the rows, and says "unpriced" if it did not get that. Not faulty: tests
;; that swap strategies make others of it, by replacing the number in that name and the value of $version.
(module
  (memory (export "memory") 1)
  (global $version i32 (i32.const 0))
  (data (i32.const 1024) "\03\00\00\00256\0a\00\00\00version-00\03\00\00\00257\08\00\00\00unpriced")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_wants") (result i32) global.get $version i32.const 1 i32.and)
  (func (export "wp_reasons") (result i32) i32.const 40)
  (func (export "wp_pick") (result i64)
    i32.const 1344 i64.load i64.eqz          ;; Cost of the first row, at 1024 + 192 + 128
    global.get $version i32.const 1 i32.and
    i32.and
    if i64.const 0x101_0000_0000 return end
    global.get $version i32.const 1036 i32.load i32.rem_u i64.extend_i32_u
    i64.const 0x100_0000_0000 i64.or)
)
