;; wp_pick turns the client away with a text of 4 billion bytes that begins outside of its memory, a status of 7 and a wait of
;; 136 years.
(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1176 i32.const 7 i32.store               ;; RejectStatus
    i32.const 1180 i32.const -1 i32.store              ;; RetryAfter
    i32.const 1184 i32.const 0x7fff_ff00 i32.store     ;; RejectText
    i32.const 1188 i32.const -1 i32.store              ;; RejectLen
    i64.const 0xffff_fffe)
)
