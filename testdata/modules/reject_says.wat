;; Rejects with what the request says: Seq is the status, MaxTokens the seconds, PromptTokens the length of the text at
;; Priority. Names its reason 300. Not faulty; the text has a line feed and what is no UTF-8.
(module
  (memory (export "memory") 1)
  (data (i32.const 16384) "no\0amore\ff today")
  (data (i32.const 1024) "\03\00\00\00300\06\00\00\00quota\0a")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_reasons") (result i32) i32.const 17)
  (func (export "wp_pick") (result i64)
    i32.const 1176 i32.const 1040 i32.load i32.store    ;; RejectStatus = Seq
    i32.const 1180 i32.const 1076 i32.load i32.store    ;; RetryAfter = MaxTokens
    i32.const 1184 i32.const 1080 i32.load i32.store    ;; RejectText = Priority
    i32.const 1188 i32.const 1064 i32.load i32.store    ;; RejectLen = PromptTokens
    i64.const 0x12c_ffff_fffe)
)
