package ledger

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

// lend answers the messages of a router: for each of KEYS it computes the slice of the router, and stores what the
// router holds. Each router gets an equal part of the rest that no router holds. Requests are counted in whole
// numbers: rounded down if another router wants more and this one does not. Requests pay afterwards, so more may be
// held than there is. Each router then waits until its part of the excess is over. A router that has more than an
// equal part, while another wants some, gets no more until it has no more than that.
//
// A field is numbers, which all versions write first: when it was written, what the router holds of the three limits,
// and what it wants of each. After them come the values of a single version: "v2:" and the debts and the past of the
// requests and of the tokens. A field with other numbers is removed, or ignored if another version has written it. A
// router that is silent for `stale` is gone. Its field is kept while what it has taken is in the minute or not paid.
//
// ARGV: the router's name, and whether it wants the entries of the others. Then for each key: three limits, the
// amount taken of each, the amounts that gone routers had taken, whether it wants more of each, the end of its field,
// and the entries of others that Redis has lost. It returns for each key the number of routers, what is lent of each
// limit and what the others owe of it, as text (numbers would be cut), then whether it knew the router, how many
// fields were none, how many are of other versions, and what the others have written: a line for each with its age,
// name and field.
const lend = `
local stale, kept, longest, time = 3000, 63000, 62, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer, arg = {}, 2
local function word() arg = arg + 1; return ARGV[arg] end
local function three() return {tonumber(word()), tonumber(word()), tonumber(word())} end
local function read(field)
  local f = {}
  for x in string.gmatch(field, '%S+') do
    local n = tonumber(x)
    if n and not (n >= 0 and n < 1e15) then return nil end
    f[#f + 1] = n
  end
  if #f == 7 and f[1] - now <= stale then return f end
end
local function debtsOf(field, limits)
  local requests, tokens = string.match(field, ' v2:([%d.]+):([%d.]+):')
  local d = {0, tonumber(requests), tonumber(tokens)}
  for k = 2, 3 do
    if not d[k] or limits[k] > 0 and d[k] > longest * limits[k] then return nil end
  end
  return d
end
for _, key in ipairs(KEYS) do
  local limits, taken, others, wants, more, before = three(), three(), three(), three(), word(), word()
  for name, field in string.gmatch(before, '%S+ (%w+) ([^\n]+)') do redis.call('HSETNX', key, name, field) end
  local routers, theirs, owed = 1, {0, 0, 0}, {0, 0, 0}
  local known, odd, versions, lines = 0, 0, 0, {}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local name, field = all[i], all[i + 1]
    local version, f, debts = string.match(field, ' v(%d+):'), read(field), nil
    local age = f and math.max(0, now - f[1])
    if version == '2' then debts = debtsOf(field, limits) end
    if name == ARGV[1] then
      known, f = 1, nil
    elseif version and version ~= '2' and not (f and age > kept) then
      versions = versions + 1
    elseif not f or version == '2' and not debts then
      odd, f = odd + 1, nil
      redis.call('HDEL', key, name)
    elseif not debts then
      if age > stale then redis.call('HDEL', key, name) end
    else
      local left = 0
      for k = 2, 3 do
        if age > stale then debts[k] = math.max(0, debts[k] - age / 60000 * limits[k]) end
        owed[k], left = owed[k] + debts[k], left + debts[k]
      end
      if age > kept and left == 0 then redis.call('HDEL', key, name) end
      if ARGV[2] == '1' and string.match(name, '^%w+$') then
        lines[#lines + 1] = string.format('%d %s %s', age, name, field)
      end
    end
    if f and age <= stale then
      routers = routers + 1
      for k = 1, 3 do
        others[k] = others[k] + f[k + 1]
        theirs[k] = math.max(theirs[k], f[k + 4])
      end
    end
  end
  local field = {now}
  answer[#answer + 1] = tostring(routers)
  for k = 1, 3 do
    local free, part, lent = limits[k] - taken[k] - others[k], limits[k] / routers, 0
    if free > 0 then
      local round = k == 3 and tonumber or theirs[k] > wants[k] and math.floor or math.ceil
      lent = taken[k] + math.min(free, round(free / routers))
    elseif taken[k] > 0 then
      lent = taken[k] * limits[k] / (taken[k] + others[k])
    end
    if theirs[k] > 0 and taken[k] > part then lent = math.min(lent, part) end
    answer[#answer + 1] = string.format('%.6f', lent)
    field[k + 1] = string.format('%.6f', math.max(lent, taken[k]))
  end
  for k = 1, 3 do
    answer[#answer + 1] = string.format('%.6f', owed[k])
    field[k + 4] = wants[k]
  end
  for _, x in ipairs({known, odd, versions, table.concat(lines, '\n')}) do answer[#answer + 1] = tostring(x) end
  redis.call('HSET', key, ARGV[1], table.concat(field, ' ') .. ' ' .. more)
  redis.call('PEXPIRE', key, 60000 * longest)
end
return answer
`

// parts of the script's answer for a key.
const parts = 11

// send runs the script for some keys. whole: it is time to learn what the others have written.
func (l *Ledger) send(ctx context.Context, some []limit.Message, whole bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	keys := make([]string, len(some))
	args := append(make([]any, 0, 2+14*len(some)), l.self, bit(whole))
	for i := range some {
		keys[i] = l.prefix + some[i].Key
		before := l.others[some[i].Key]
		args = appendMessage(args, &some[i], before.told())
	}
	answer, err := l.c.Eval(ctx, lend, keys, args...).StringSlice()
	if err != nil {
		return err
	}
	if len(answer) != parts*len(some) {
		return fmt.Errorf("ledger: Redis at %s answered with %d parts in place of %d; is it a Redis?", l.c.Addr,
			len(answer), parts*len(some))
	}
	now := time.Now()
	for i := range some {
		if err := l.take(&some[i], answer[parts*i:][:parts], whole, now); err != nil {
			return err
		}
	}
	return nil
}

// appendMessage appends a message in the form of the script, and the entries of others that Redis has lost.
func appendMessage(args []any, m *limit.Message, before string) []any {
	for _, amounts := range [...]limit.Amounts{m.Limits, m.Taken, m.Gone} {
		for _, n := range amounts {
			args = append(args, strconv.FormatFloat(n, 'f', 6, 64))
		}
	}
	for _, wants := range m.Wants {
		args = append(args, bit(wants))
	}
	more := fmt.Appendf(nil, "v2:%.6f:%.6f", m.Debts[limit.ByRequests], m.Debts[limit.ByTokens])
	for _, past := range m.Past[limit.ByRequests:] {
		for i, n := range past {
			more = append(more, ":,"[min(i, 1)])
			more = strconv.AppendInt(more, int64(math.Ceil(n)), 10)
		}
	}
	return append(args, string(more), before)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// take passes the answer to a message on. That to the message without a key is the number of routers.
func (l *Ledger) take(m *limit.Message, answer []string, whole bool, now time.Time) error {
	routers, lent, owed, err := parse(answer)
	if err != nil {
		return fmt.Errorf("ledger: Redis at %s: %w", l.c.Addr, err)
	}
	if answer[8] != "0" && !l.saidOdd {
		l.saidOdd = true
		l.log.Warn("removed from Redis what no router can have written of the limits of keys", "addr", l.c.Addr,
			"key", m.Key)
	}
	if answer[9] != "0" && !l.saidVersion {
		l.saidVersion = true
		l.log.Warn("another version of warmpath shares the limits of keys: this router counts what both know",
			"addr", l.c.Addr, "key", m.Key)
	}
	if m.Key == "" {
		l.Share(routers)
		return nil
	}
	m.Lent(lent, owed, now)
	o := l.others[m.Key]
	o.forgotten = answer[7] == "0" && o.wrote
	if whole && !o.forgotten {
		o.lines = answer[10]
		m.Left(goneOf(o.lines), now)
	}
	o.wrote = true
	l.others[m.Key] = o
	return nil
}

// others is what the other routers have written for a key.
type others struct {
	lines     string // as the script gives them
	wrote     bool   // this router has written, too
	forgotten bool   // Redis has lost it since
}

// told returns the entries of others to write to Redis: none, while Redis has them.
func (o *others) told() string {
	if o.forgotten {
		return o.lines
	}
	return ""
}

// quiet is after how much silence a router is gone. It is a second less than in the script, which this router asks for
// the others once a second: so what a router has taken never counts for nothing.
const quiet = 2 * time.Second

// goneOf returns what the routers had taken that are gone, of the script's lines. It leaves out what is none.
func goneOf(lines string) (all []limit.Gone) {
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		age, err := strconv.Atoi(fields[0])
		if g := (limit.Gone{Age: time.Duration(age) * time.Millisecond}); err == nil && g.Age > quiet {
			past := strings.Split(fields[len(fields)-1], ":")
			for by := limit.ByRequests; by < limit.Count && len(past) == 5; by++ {
				for i, n := range strings.SplitN(past[2+by], ",", len(g.Past[by])) {
					units, err := strconv.ParseUint(n, 10, 50)
					if err == nil {
						g.Past[by][i] = float64(units)
					}
				}
			}
			all = append(all, g)
		}
	}
	return all
}

// parse reads the script's answer for one key.
func parse(answer []string) (routers int, lent, owed limit.Amounts, err error) {
	routers, err = strconv.Atoi(answer[0])
	if err != nil || routers < 1 || routers > maxRouters {
		return 0, lent, owed, fmt.Errorf("%.20q is no number of routers", answer[0])
	}
	for i, text := range answer[1:7] {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n < 1e18) {
			return 0, lent, owed, fmt.Errorf("%.20q is no part of a limit", text)
		}
		if i < len(lent) {
			lent[i] = n
		} else {
			owed[i-len(lent)] = n
		}
	}
	return routers, lent, owed, nil
}

// maxRouters is more than any Redis has.
const maxRouters = 100_000
