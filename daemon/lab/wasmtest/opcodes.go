package wasmtest

import "strings"

// from45 lists the instructions without immediates, from opcode 0x45 on without a gap.
const from45 = `i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u
i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u
f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge
i32.clz i32.ctz i32.popcnt i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor
i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr
i64.clz i64.ctz i64.popcnt i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor
i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr
f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt f32.add f32.sub f32.mul f32.div f32.min
f32.max f32.copysign
f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt f64.add f64.sub f64.mul f64.div f64.min
f64.max f64.copysign
i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u i64.extend_i32_s i64.extend_i32_u
i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u
f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64
f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32
i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64
i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s`

// from28 lists the loads and stores, from opcode 0x28 on; their immediates are align and offset.
const from28 = `i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u i64.load8_s
i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u i32.store i64.store f32.store f64.store i32.store8
i32.store16
i64.store8 i64.store16 i64.store32`

// fixed are instructions whose bytes never vary, immediates of zero included.
var fixed = func() map[string][]byte {
	all := map[string][]byte{}
	for op, raw := range singular {
		all[op] = raw
	}
	for i, op := range strings.Fields(from45) {
		all[op] = []byte{byte(0x45 + i)}
	}
	for i, op := range strings.Fields(from28) {
		all[op] = []byte{byte(0x28 + i), 0, 0}
	}
	return all
}()

// singular are the fixed ones that stand in no range. The last rows are what the meter refuses.
var singular = map[string][]byte{
	"unreachable": {0x00}, "nop": {0x01}, "else": {0x05}, "end": {0x0b}, "return": {0x0f}, "drop": {0x1a},
	"select":      {0x1b},
	"memory.size": {0x3f, 0}, "memory.grow": {0x40, 0},
	"memory.copy": {0xfc, 10, 0, 0}, "memory.fill": {0xfc, 11, 0},
	"table.get": {0x25, 0}, "table.set": {0x26, 0}, "ref.is_null": {0xd1},
	"table.copy": {0xfc, 14, 0, 0}, "table.grow": {0xfc, 15, 0}, "table.size": {0xfc, 16, 0}, "table.fill": {0xfc, 17, 0},
	"i32.trunc_sat_f64_s": {0xfc, 2}, "i64.trunc_sat_f64_s": {0xfc, 6}, "ref.null": {0xd0, 0x70},
	"i32x4.splat":  {0xfd, 17},
	"atomic.fence": {0xfe, 3, 0},
	"throw_ref":    {0x0a},
}
