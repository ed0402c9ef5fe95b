package ledger

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

// lend answers the messages of a router: for each of KEYS it computes what is lent to the router, and remembers what
// the router holds. Of what nobody holds each router gets an equal part. If more is held than there is, as requests pay
// afterwards, each waits until its part of that is over. A router that has more than an equal part, while another wants
// some, gets no more until it has no more than that.
//
// ARGV: the router's name, then for each key three limits, what is taken of each and whether more is wanted of each. It
// returns for each key the number of routers and what is lent of each limit, as text: numbers would be cut.
const lend = `
local stale, time = 3000, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer, arg = {}, 1
local function num() arg = arg + 1; return tonumber(ARGV[arg]) or 0 end
local function three() return {num(), num(), num()} end
for _, key in ipairs(KEYS) do
  local limits, taken, wants = three(), three(), three()
  local routers, others, theirs = 1, {0, 0, 0}, {0, 0, 0}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local f = {}
    for x in string.gmatch(all[i + 1], '%S+') do f[#f + 1] = tonumber(x) end
    if #f ~= 7 or math.abs(now - f[1]) > stale then
      redis.call('HDEL', key, all[i])
    elseif all[i] ~= ARGV[1] then
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
      lent = taken[k] + free / routers
    elseif taken[k] > 0 then
      lent = taken[k] * limits[k] / (taken[k] + others[k])
    end
    if theirs[k] > 0 and taken[k] > part then lent = math.min(lent, part) end
    answer[#answer + 1] = string.format('%.6f', lent)
    field[k + 1] = string.format('%.6f', math.max(lent, taken[k]))
  end
  for k = 1, 3 do field[k + 4] = wants[k] end
  redis.call('HSET', key, ARGV[1], table.concat(field, ' '))
  redis.call('PEXPIRE', key, 60000)
end
return answer
`

// send runs the script for some keys.
func (l *Ledger) send(ctx context.Context, some []limit.Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	keys := make([]string, len(some))
	args := make([]any, 1, 1+9*len(some))
	args[0] = l.self
	for i := range some {
		keys[i] = l.prefix + some[i].Key
		args = appendMessage(args, &some[i])
	}
	answer, err := l.c.Eval(ctx, lend, keys, args...).StringSlice()
	if err != nil {
		return err
	}
	if len(answer) != 4*len(some) {
		return fmt.Errorf("ledger: Redis at %s answered with %d parts in place of %d; is it a Redis?", l.c.Addr,
			len(answer), 4*len(some))
	}
	now := time.Now()
	for i := range some {
		if err := l.take(&some[i], answer[4*i:4*i+4], now); err != nil {
			return err
		}
	}
	return nil
}

// appendMessage appends a message as the script takes it.
func appendMessage(args []any, m *limit.Message) []any {
	for _, amounts := range [...]limit.Amounts{m.Limits, m.Taken} {
		for _, n := range amounts {
			args = append(args, strconv.FormatFloat(n, 'f', 6, 64))
		}
	}
	for _, wants := range m.Wants {
		args = append(args, bit(wants))
	}
	return args
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// take passes the answer to a message on. That to the message without a key is the number of routers.
func (l *Ledger) take(m *limit.Message, answer []string, now time.Time) error {
	routers, lent, err := parse(answer)
	if err != nil {
		return fmt.Errorf("ledger: Redis at %s: %w", l.c.Addr, err)
	}
	if m.Key == "" {
		l.Share(routers)
		return nil
	}
	m.Lent(lent, now)
	return nil
}

// parse reads the script's answer for one key.
func parse(answer []string) (routers int, lent limit.Amounts, err error) {
	routers, err = strconv.Atoi(answer[0])
	if err != nil || routers < 1 || routers > maxRouters {
		return 0, lent, fmt.Errorf("%.20q is no number of routers", answer[0])
	}
	for i := range lent {
		lent[i], err = strconv.ParseFloat(answer[i+1], 64)
		if err != nil || !(lent[i] >= 0 && lent[i] < 1e18) {
			return 0, lent, fmt.Errorf("%.20q is no part of a limit", answer[i+1])
		}
	}
	return routers, lent, nil
}

// maxRouters is more than any Redis has.
const maxRouters = 100_000
