package tier

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// What stands in Redis under a key is a string: one byte of mark, then the value. Anything else is not ours
// ("garbage").
const (
	markValue     = 'v'
	markTombstone = 't' // a router deleted it; others drop their copy when they see it
)

// kind is what a script found, or did.
type kind byte

const (
	kindValue     kind = 'v' // a value stands there
	kindStored    kind = 's' // the value given was stored
	kindRestored  kind = 'r' // nothing stood there, and the asking router's value was put back
	kindTombstone kind = 't'
	kindNothing   kind = 'n'
	kindGarbage   kind = 'g' // what no router wrote; it counts as nothing
	kindRefused   kind = 'x' // what stands there is no number, or the sum overflows
	kindForgot    kind = 'u' // nothing, but Redis has lost what it knew
)

// reply is the answer of a script: {kind, value, ttl in ms, 0 = none}.
type reply struct {
	kind  kind
	value []byte
	ttl   time.Duration // 0: no expiry
}

// holds reports whether a value stands there now.
func (r *reply) holds() bool {
	return r.kind == kindValue || r.kind == kindRestored || r.kind == kindStored
}

// Each script works on one key, in one step. Its second key is the mark by which it is seen that Redis has forgotten,
// and the last argument what the asking router takes that mark to be, "" = it does not know: see epoch.go.
//
// "restore" is the value that the asking router still holds, with its TTL, or "". It is put back where Redis has
// nothing, since that can only be Redis's loss (a flush, a restart without its file, an eviction): a deletion leaves a
// tombstone.

// found opens every script: v is the value, kind as above; left is its TTL (0: none), put stores a marked value.
const found = `
local v, kind = redis.pcall('GET', KEYS[1]), 'n'
if type(v) == 'string' then
  kind = string.sub(v, 1, 1)
  if kind ~= 'v' and kind ~= 't' or kind == 't' and #v > 1 then kind = 'g' end
  v = string.sub(v, 2)
elseif type(v) == 'table' then
  if not string.find(v.err, 'WRONGTYPE') then return v end
  kind, v = 'g', ''
else
  v = ''
end
local function left()
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl < 0 then return 0 end
  return math.max(ttl, 1)
end
local function forgot()
  return kind == 'n' and ARGV[#ARGV] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[#ARGV]
end
local function put(payload, ttl)
  if tonumber(ttl) > 0 then
    redis.call('SET', KEYS[1], payload, 'PX', ttl)
  else
    redis.call('SET', KEYS[1], payload)
  end
end
`

// restored ends the scripts that read, where there is no value: it puts restore and its TTL, the first two arguments,
// back.
const restored = `
if kind ~= 't' and ARGV[1] ~= '' then
  put(ARGV[1], ARGV[2])
  return {'r', string.sub(ARGV[1], 2), tonumber(ARGV[2])}
end
if forgot() then kind = 'u' end
return {kind, '', 0}
`

var (
	// read: restore, its ttl ("" for none). kind v, t, n, g; r = restored.
	scriptRead = redis.NewScript(found + `
if kind == 'v' then return {kind, v, left()} end
` + restored)
	// touch: restore, new ttl. As read, with the new ttl.
	scriptTouch = redis.NewScript(found + `
if kind == 'v' then
  if tonumber(ARGV[2]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
  return {kind, v, tonumber(ARGV[2])}
end
` + restored)
	// prolong: restore, ttl. As touch, but what lives longer already is left alone: for touches that come late.
	scriptProlong = redis.NewScript(found + `
if kind == 'v' then
  local rest, ttl = left(), tonumber(ARGV[2])
  if ttl == 0 then
    redis.call('PERSIST', KEYS[1])
  elseif rest > 0 and rest < ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  return {kind, v, left()}
end
if kind ~= 't' then
  put(ARGV[1], ARGV[2])
  return {'r', string.sub(ARGV[1], 2), tonumber(ARGV[2])}
end
return {kind, '', 0}
`)
	// setIfAbsent: value, ttl. kind v = it stood there; s = stored.
	scriptSetIfAbsent = redis.NewScript(found + `
if kind == 'v' then return {kind, v, left()} end
if forgot() then return {'u', '', 0} end
put(ARGV[1], ARGV[2])
return {'s', '', tonumber(ARGV[2])}
`)
	// swap: old, new, ttl. If old is "", the key must have no value. It returns kind s if it stored new, and otherwise
	// the kind of what the key has.
	scriptSwap = redis.NewScript(found + `
local same = kind == 'v' and ARGV[1] == 'v' .. v or kind ~= 'v' and ARGV[1] == ''
if forgot() then return {'u', '', 0} end
if same then
  put(ARGV[2], ARGV[3])
  return {'s', '', tonumber(ARGV[3])}
end
if kind == 'v' then return {kind, v, left()} end
return {kind, '', 0}
`)
	// set: value, ttl, whatever stands there. kind s.
	scriptSet = redis.NewScript(found + `
put(ARGV[1], ARGV[2])
return {'s', '', tonumber(ARGV[2])}
`)
	// replace: base, new, ttl, of a change made while Redis was silent. base "" = there was nothing. kind s = stored, or
	// stood there already; v = what stands there, and stays; t = deleted meanwhile.
	scriptReplace = redis.NewScript(found + `
if kind == 'v' and ARGV[1] ~= 'v' .. v and ARGV[2] ~= 'v' .. v then return {kind, v, left()} end
if kind == 't' and ARGV[1] ~= '' then return {kind, '', 0} end
if forgot() then return {'u', '', 0} end
put(ARGV[2], ARGV[3])
return {'s', '', tonumber(ARGV[3])}
`)
	// add: delta, ttl of a new counter. Lua's numbers are doubles, so INCRBY counts: on the key itself, where the digits
	// stand alone for that moment. kind s = the new sum; x = what stands there is no number, or the sum overflows.
	scriptAdd = redis.NewScript(found + `
local ttl, sum = ARGV[2], '0'
if kind == 'v' then
  ttl, sum = left(), v
end
redis.call('SET', KEYS[1], sum)
local r = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(r) == 'table' then
  if kind == 'v' then put('v' .. v, ttl) else redis.call('DEL', KEYS[1]) end
  return {'x', '', 0}
end
sum = redis.call('GET', KEYS[1])
put('v' .. sum, ttl)
return {'s', sum, tonumber(ttl)}
`)
	// delete: ttl of the tombstone at least, in ms; a value's own is kept where it is longer, since copies live that long.
	// 0: where nothing stands there is no tombstone. base: nothing else is deleted; "" = whatever stands there.
	scriptDelete = redis.NewScript(found + `
local ttl = tonumber(ARGV[1])
if ARGV[2] ~= '' and (kind ~= 'v' or ARGV[2] ~= 'v' .. v) then return {kind, '', 0} end
if kind == 'v' or kind == 't' then
  local rest = left()
  if rest == 0 then rest = 86400000 end
  ttl = math.max(ttl, rest)
end
if ttl > 0 then redis.call('SET', KEYS[1], 't', 'PX', ttl) else redis.call('DEL', KEYS[1]) end
return {kind, '', 0}
`)
	// What a request may run; what pays debts is sent whole.
	scripts = []*redis.Script{scriptRead, scriptTouch, scriptSetIfAbsent, scriptSwap, scriptAdd, scriptDelete}
)
