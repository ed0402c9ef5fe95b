;; Calls every import of the contract with good and with bad arguments, and compares the answers. Its reason is the number of
;; the first answer that is wrong, 0 if all are right: row 0 in any case. Not faulty: what it expects is told by
;; host/conformance_test.go, which gives it a request of 4 rows and a store of one key.
(module
  (import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
  (import "warmpath_v1" "prefix_match" (func $prefix_match (param i32) (result i32)))
  (import "warmpath_v1" "prefix_hash" (func $prefix_hash (param i32) (result i64)))
  (import "warmpath_v1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
  (import "warmpath_v1" "kv_cas" (func $kv_cas (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "warmpath_v1" "kv_incr" (func $kv_incr (param i32 i32 i64 i32) (result i64)))
  (import "warmpath_v1" "log" (func $log (param i32 i32 i32)))
  (import "warmpath_v1" "log_level" (func $log_level (result i32)))
  (import "warmpath_v1" "metric" (func $metric (param i32 i32 i64)))
  (import "warmpath_v1" "error" (func $error (param i32 i32)))
  (import "warmpath_v1" "prefix_best" (func $prefix_best (param i32 i32) (result i32)))
  (import "warmpath_v1" "prefix_worker" (func $prefix_worker (param i32 i32 i32) (result i32)))
  (import "warmpath_v1" "prefix_match_key" (func $prefix_match_key (param i32 i32 i32) (result i32)))
  (import "warmpath_v1" "cache_tiers" (func $cache_tiers (param i32 i32 i32) (result i32)))
  (import "warmpath_v1" "own" (func $own (param i64 f64) (result i32)))
  (import "warmpath_v1" "own_of" (func $own_of (param i64) (result f64)))
  (import "warmpath_v1" "kv_get_many" (func $kv_get_many (param i32 i32 i32 i32) (result i32)))
  (import "warmpath_v1" "zone_offset" (func $zone_offset (param i32 i32 i64) (result i32)))
  (import "warmpath_v1" "cache" (func $cache (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "keyvalueNEWhitsshe said")
  (data (i32.const 64) "\03\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00")
  (data (i32.const 100) "x-tenant")
  (data (i32.const 132) "x-other")
  (data (i32.const 200) "\03\00\00\00key\04\00\00\00hits")
  (data (i32.const 230) "Europe/Berlin")
  (global $wrong (mut i32) (i32.const 0))
  (func (export "warmpath_abi_1_2"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)

  (func $is (param $n i32) (param $got i32) (param $want i32)
    local.get $got local.get $want i32.ne global.get $wrong i32.eqz i32.and
    if local.get $n global.set $wrong end)
  (func $is64 (param $n i32) (param $got i64) (param $want i64)
    local.get $n local.get $got local.get $want i64.ne i32.const 0 call $is)

  (func (export "wp_pick") (result i64)
    i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end ;; the self-test's frames
    i32.const 0 global.set $wrong
    i32.const 1 i32.const 0 i32.const 0 i32.const 512 i32.const 100 call $str i32.const 9 call $is   ;; the session key, 9 bytes
    i32.const 2 i32.const 512 i32.load i32.const 0x73736573 call $is                                 ;;   and its beginning
    i32.const 3 i32.const 0 i32.const 0 i32.const 600 i32.const 8 call $str i32.const 9 call $is     ;; too small a buffer: the length needed
    i32.const 4 i32.const 600 i32.load i32.const 0 call $is                                          ;;   and nothing written
    i32.const 5 i32.const 1 i32.const 0 i32.const 512 i32.const 100 call $str i32.const 5 call $is   ;; the model's name
    i32.const 6 i32.const 2 i32.const 2 i32.const 512 i32.const 100 call $str i32.const 8 call $is   ;; row 2's worker
    i32.const 7 i32.const 2 i32.const 4 i32.const 512 i32.const 100 call $str i32.const -1 call $is  ;; no such row
    ;; nor this
    i32.const 8 i32.const 2 i32.const -1 i32.const 512 i32.const 100 call $str i32.const -1 call $is
    i32.const 9 i32.const 3 i32.const 0 i32.const 512 i32.const 100 call $str i32.const 0 call $is   ;; no tenant
    i32.const 10 i32.const 4 i32.const 0 i32.const 512 i32.const 100 call $str i32.const 4 call $is  ;; the caller's name
    ;; label 0
    i32.const 11 i32.const 5 i32.const 0 i32.const 512 i32.const 100 call $str i32.const 10 call $is
    ;; no such label
    i32.const 12 i32.const 5 i32.const 1 i32.const 512 i32.const 100 call $str i32.const -1 call $is
    i32.const 13 i32.const 6 i32.const 8 i32.const 100 i32.const 32 call $str i32.const 9 call $is   ;; the header x-tenant, whose name stands where its value goes
    i32.const 14 i32.const 100 i32.load i32.const 0x656d6361 call $is                                ;;   and its beginning
    i32.const 15 i32.const 6 i32.const 7 i32.const 132 i32.const 32 call $str i32.const -4 call $is  ;; a header that is not allowed
    i32.const 16 i32.const 6 i32.const 0 i32.const 132 i32.const 32 call $str i32.const -3 call $is  ;; a header without a name
    ;; a name that is too long
    i32.const 17 i32.const 6 i32.const 129 i32.const 132 i32.const 200 call $str i32.const -3 call $is
    ;; no such kind
    i32.const 18 i32.const 99 i32.const 0 i32.const 512 i32.const 100 call $str i32.const -3 call $is
    ;; a buffer outside
    i32.const 19 i32.const 0 i32.const 0 i32.const 0xffff_fff0 i32.const 100 call $str i32.const -3 call $is
    i32.const 20 i32.const 2 call $prefix_match i32.const 9 call $is                                 ;; blocks on row 2's worker, all tiers
    i32.const 21 i32.const 4 call $prefix_match i32.const -1 call $is                                ;; no such row
    i32.const 22 i32.const -1 call $prefix_match i32.const -1 call $is                               ;; nor this
    i32.const 23 i32.const 1 call $prefix_hash i64.const 22 call $is64                               ;; the hash of block 1
    i32.const 24 i32.const 2 call $prefix_hash i64.const 0 call $is64                                ;; no such block
    i32.const 25 i32.const -1 call $prefix_hash i64.const 0 call $is64                               ;; nor this
    i32.const 26 i32.const 512 i32.const 24 call $prefix_best i32.const 24 call $is                  ;; who holds the most
    i32.const 27 i32.const 512 i64.load i64.const 900 call $is64                                     ;;   by key
    i32.const 28 i32.const 600 i32.const 23 call $prefix_best i32.const 24 call $is                  ;; too small a buffer
    i32.const 29 i32.const 0xffff_fff0 i32.const 24 call $prefix_best i32.const -3 call $is          ;; a buffer outside
    i32.const 30 i32.const 2 i32.const 512 i32.const 24 call $prefix_worker i32.const 24 call $is    ;; row 2's worker
    i32.const 31 i32.const 4 i32.const 512 i32.const 24 call $prefix_worker i32.const -1 call $is    ;; no such row
    ;; a buffer outside
    i32.const 32 i32.const 2 i32.const 0xffff_fff0 i32.const 24 call $prefix_worker i32.const -3 call $is
    i32.const 33 i32.const 1 i32.const 64 i32.const 2 call $prefix_match_key i32.const 5 call $is    ;; another chain, of the hashes 3 and 4
    i32.const 34 i32.const 1 i32.const 64 i32.const 0 call $prefix_match_key i32.const 0 call $is    ;; no hashes
    ;; more than MaxChain
    i32.const 35 i32.const 1 i32.const 64 i32.const 16385 call $prefix_match_key i32.const -3 call $is
    i32.const 36 i32.const 4 i32.const 64 i32.const 2 call $prefix_match_key i32.const -1 call $is   ;; no such row
    ;; a chain outside
    i32.const 37 i32.const 1 i32.const 65535 i32.const 2 call $prefix_match_key i32.const -3 call $is
    i32.const 38 i32.const 2 i32.const 512 i32.const 64 call $cache_tiers i32.const 64 call $is      ;; two tiers
    i32.const 39 i32.const 2 i32.const 600 i32.const 32 call $cache_tiers i32.const 64 call $is      ;; too small a buffer
    i32.const 40 i32.const 4 i32.const 512 i32.const 64 call $cache_tiers i32.const -1 call $is      ;; no such row
    ;; a buffer outside
    i32.const 41 i32.const 2 i32.const 0xffff_fff0 i32.const 64 call $cache_tiers i32.const -3 call $is
    ;; a key that nobody has set
    i32.const 42 i32.const 0 i32.const 3 i32.const 512 i32.const 100 call $kv_get i32.const -1 call $is
    ;; set it
    i32.const 43 i32.const 0 i32.const 3 i32.const 0 i32.const 0 i32.const 3 i32.const 5 i32.const 0 call $kv_cas i32.const 0 call $is
    ;; it is there
    i32.const 44 i32.const 0 i32.const 3 i32.const 512 i32.const 100 call $kv_get i32.const 5 call $is
    i32.const 45 i32.const 512 i32.load i32.const 0x756c6176 call $is                                ;;   with its value
    ;; too small a buffer
    i32.const 46 i32.const 0 i32.const 3 i32.const 600 i32.const 4 call $kv_get i32.const 5 call $is
    ;; a buffer outside
    i32.const 47 i32.const 0 i32.const 3 i32.const 0xffff_fff0 i32.const 100 call $kv_get i32.const -3 call $is
    ;; no key
    i32.const 48 i32.const 0 i32.const 0 i32.const 512 i32.const 100 call $kv_get i32.const -3 call $is
    ;; a key outside
    i32.const 49 i32.const 0xffff_fff0 i32.const 100 i32.const 512 i32.const 100 call $kv_get i32.const -3 call $is
    ;; it is not absent
    i32.const 50 i32.const 0 i32.const 3 i32.const 0 i32.const 0 i32.const 8 i32.const 3 i32.const 0 call $kv_cas i32.const -2 call $is
    ;; nor has it another value
    i32.const 51 i32.const 0 i32.const 3 i32.const 8 i32.const 3 i32.const 8 i32.const 3 i32.const 0 call $kv_cas i32.const -2 call $is
    ;; swap it
    i32.const 52 i32.const 0 i32.const 3 i32.const 3 i32.const 5 i32.const 8 i32.const 3 i32.const 60000 call $kv_cas i32.const 0 call $is
    ;; no key
    i32.const 53 i32.const 0 i32.const 0 i32.const 0 i32.const 0 i32.const 8 i32.const 3 i32.const 0 call $kv_cas i32.const -3 call $is
    ;; a life below zero
    i32.const 54 i32.const 0 i32.const 3 i32.const 8 i32.const 3 i32.const 3 i32.const 5 i32.const -1 call $kv_cas i32.const -3 call $is
    ;; an old value outside
    i32.const 55 i32.const 0 i32.const 3 i32.const 0xffff_fff0 i32.const 100 i32.const 3 i32.const 5 i32.const 0 call $kv_cas i32.const -3 call $is
    ;; a new value outside
    i32.const 56 i32.const 0 i32.const 3 i32.const 8 i32.const 3 i32.const 65535 i32.const 5 i32.const 0 call $kv_cas i32.const -3 call $is
    ;; beyond the quota
    i32.const 57 i32.const 3 i32.const 5 i32.const 0 i32.const 0 i32.const 8 i32.const 3 i32.const 0 call $kv_cas i32.const -5 call $is
    ;; count up
    i32.const 58 i32.const 11 i32.const 4 i64.const 7 i32.const 0 call $kv_incr i64.const 7 call $is64
    ;; and down
    i32.const 59 i32.const 11 i32.const 4 i64.const -1 i32.const 60000 call $kv_incr i64.const 6 call $is64
    ;; no key
    i32.const 60 i32.const 11 i32.const 0 i64.const 1 i32.const 0 call $kv_incr i64.const 0x8000_0000_0000_0000 call $is64
    ;; a life below zero
    i32.const 61 i32.const 11 i32.const 4 i64.const 1 i32.const -1 call $kv_incr i64.const 0x8000_0000_0000_0000 call $is64
    ;; a key outside
    i32.const 62 i32.const 0xffff_fff0 i32.const 4 i64.const 1 i32.const 0 call $kv_incr i64.const 0x8000_0000_0000_0000 call $is64
    i32.const 63 call $log_level i32.const 0 call $is                                                ;; everything is logged

    ;; a worker's number
    i32.const 64 i64.const 77 f64.const 2.5 call $own i32.const 0 call $is
    i32.const 65 i64.const 77 call $own_of i64.reinterpret_f64 i64.const 0x4004_0000_0000_0000 call $is64
    ;; 1e300 is one, no number and infinity are none, and leave it
    i32.const 66 i64.const 77 i64.const 0x7e37_e43c_8800_759c f64.reinterpret_i64 call $own i32.const 0 call $is
    i32.const 67 i64.const 77 i64.const 0x7ff8_0000_0000_0000 f64.reinterpret_i64 call $own i32.const -3 call $is
    i32.const 68 i64.const 77 i64.const 0x7ff0_0000_0000_0000 f64.reinterpret_i64 call $own i32.const -3 call $is
    i32.const 69 i64.const 77 call $own_of i64.reinterpret_f64 i64.const 0x7e37_e43c_8800_759c call $is64
    ;; no such worker
    i32.const 70 i64.const 78 f64.const 1 call $own i32.const -1 call $is
    i32.const 71 i64.const 78 call $own_of i64.reinterpret_f64 i64.const 0 call $is64
    ;; two keys, of which one is absent
    i32.const 72 i32.const 200 i32.const 15 i32.const 700 i32.const 100 call $kv_get_many i32.const 11 call $is
    i32.const 73 i32.const 700 i32.load i32.const 3 call $is
    i32.const 74 i32.const 707 i32.load i32.const -1 call $is
    ;; too small a buffer, and nothing written
    i32.const 75 i32.const 200 i32.const 15 i32.const 800 i32.const 10 call $kv_get_many i32.const 11 call $is
    i32.const 76 i32.const 800 i32.load i32.const 0 call $is
    ;; no keys
    i32.const 77 i32.const 200 i32.const 0 i32.const 800 i32.const 10 call $kv_get_many i32.const 0 call $is
    ;; keys that are cut, without a letter, longer than their bytes, and outside
    i32.const 78 i32.const 200 i32.const 14 i32.const 700 i32.const 100 call $kv_get_many i32.const -3 call $is
    i32.const 79 i32.const 600 i32.const 4 i32.const 700 i32.const 100 call $kv_get_many i32.const -3 call $is
    i32.const 80 i32.const 0 i32.const 23 i32.const 700 i32.const 100 call $kv_get_many i32.const -3 call $is
    i32.const 81 i32.const 0xffff_fff0 i32.const 100 i32.const 700 i32.const 100 call $kv_get_many i32.const -3 call $is
    i32.const 82 i32.const 200 i32.const 15 i32.const 0xffff_fff0 i32.const 100 call $kv_get_many i32.const -3 call $is
    ;; in 1970 Berlin was an hour ahead, in July 2026 it is two
    i32.const 83 i32.const 230 i32.const 13 i64.const 0 call $zone_offset i32.const 3600 call $is
    i32.const 84 i32.const 230 i32.const 13 i64.const 1783000000000000000 call $zone_offset i32.const 7200 call $is
    ;; no such zone, none, a name that is too long, and one outside
    i32.const 85 i32.const 0 i32.const 3 i64.const 0 call $zone_offset i32.const 0x8000_0000 call $is
    i32.const 86 i32.const 230 i32.const 0 i64.const 0 call $zone_offset i32.const 0x8000_0000 call $is
    i32.const 87 i32.const 230 i32.const 65 i64.const 0 call $zone_offset i32.const 0x8000_0000 call $is
    i32.const 88 i32.const 0xffff_fff0 i32.const 60 i64.const 0 call $zone_offset i32.const 0x8000_0000 call $is

    ;; keep for 5 s, drop the session key, have row 2 hold the prompt, and two blocks of it
    i32.const 89 i32.const 0 i32.const 0 i32.const 5000 i32.const 0 i32.const 0 call $cache i32.const 0 call $is
    i32.const 90 i32.const 1 i32.const 0 i32.const 0 i32.const 0 i32.const 3 call $cache i32.const 0 call $is
    i32.const 91 i32.const 2 i32.const 2 i32.const 1000 i32.const 0 i32.const 0 call $cache i32.const 0 call $is
    i32.const 92 i32.const 3 i32.const 2 i32.const 2 i32.const 0 i32.const 0 call $cache i32.const 0 call $is
    ;; no such wish, nor row; a name outside, and one that is too long
    i32.const 93 i32.const 4 i32.const 0 i32.const 0 i32.const 0 i32.const 0 call $cache i32.const -3 call $is
    i32.const 94 i32.const 2 i32.const 4 i32.const 0 i32.const 0 i32.const 0 call $cache i32.const -1 call $is
    i32.const 95 i32.const 3 i32.const -1 i32.const 0 i32.const 0 i32.const 0 call $cache i32.const -1 call $is
    i32.const 96 i32.const 1 i32.const 0 i32.const 0 i32.const 0xffff_fff0 i32.const 60 call $cache i32.const -3 call $is
    i32.const 97 i32.const 1 i32.const 0 i32.const 0 i32.const 0 i32.const 257 call $cache i32.const -3 call $is
    ;; the ninth
    i32.const 0 i32.const 0 i32.const 1 i32.const 0 i32.const 0 call $cache drop
    i32.const 0 i32.const 0 i32.const 2 i32.const 0 i32.const 0 call $cache drop
    i32.const 0 i32.const 0 i32.const 3 i32.const 0 i32.const 0 call $cache drop
    i32.const 0 i32.const 0 i32.const 4 i32.const 0 i32.const 0 call $cache drop
    i32.const 98 i32.const 0 i32.const 0 i32.const 5 i32.const 0 i32.const 0 call $cache i32.const -5 call $is

    ;; These answer nothing; the log and the module's counters tell. 0x4004... is 2.5, 0x7ff8... no number.
    i32.const 3 i32.const 8 i32.const 3 call $log
    i32.const 99 i32.const 8 i32.const 3 call $log                   ;; above the highest level: that
    i32.const 3 i32.const 65535 i32.const 100 call $log
    i32.const 11 i32.const 4 i64.const 0x4004_0000_0000_0000 call $metric
    i32.const 8 i32.const 3 i64.const 0x4004_0000_0000_0000 call $metric  ;; NEW is no name of a counter
    i32.const 11 i32.const 4 i64.const 0x7ff8_0000_0000_0000 call $metric
    i32.const 11 i32.const 4 i64.const 0xc004_0000_0000_0000 call $metric ;; counters do not go down
    i32.const 0xffff_fff0 i32.const 4 i64.const 0x4004_0000_0000_0000 call $metric
    i32.const 65535 i32.const 100 call $error
    i32.const 15 i32.const 8 call $error
    global.get $wrong i64.extend_i32_u i64.const 32 i64.shl)
)
