package resp

import (
	"math"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// runSet stores the value, which take has already read into its place.
func runSet(c *conn, args [][]byte) error {
	if !c.reader.value { // an inline command: the value is among the words
		c.filling, c.refused = c.view.Reserve(c.key(args[1]), int64(len(args[2])))
		if c.refused == nil {
			rest := args[2]
			for _, p := range c.filling.Pieces() {
				rest = rest[copy(p, rest):]
			}
		}
	}
	terms, bad := setTerms(args[3:], time.Now())
	switch {
	case bad != "":
		c.failed(bad)
	case c.refused != nil:
		c.server.config.Log.Debug("the KV cache refused a value", "client", c.owner, "reason", c.refused)
		c.failed(refusal(c.refused))
	default:
		f := c.filling
		c.filling = nil
		if f.Commit(terms) {
			c.out.ok()
		} else {
			c.out.null()
		}
	}
	c.abort()
	return nil
}

// refusal returns the error for a value that is refused. Clients of Redis take OOM for a cache without room.
func refusal(why error) string {
	switch why {
	case kvstore.ErrFull, kvstore.ErrWriting, kvstore.ErrQuiet:
		return "OOM command not allowed: " + why.Error()
	}
	return "ERR " + why.Error()
}

// setTerms parses the options of SET.
func setTerms(options [][]byte, now time.Time) (t kvstore.Terms, bad string) {
	const syntax = "ERR syntax error"
	for i := 0; i < len(options); i++ {
		o := options[i]
		switch {
		case equalFold(o, "NX") && t.When == kvstore.Always:
			t.When = kvstore.IfAbsent
		case equalFold(o, "XX") && t.When == kvstore.Always:
			t.When = kvstore.IfPresent
		case t.Life == 0 && i+1 < len(options) && isLife(o):
			i++
			n, err := strconv.ParseInt(string(options[i]), 10, 64)
			if err != nil {
				return t, "ERR value is not an integer or out of range"
			}
			life, ok := lifeOf(o, n, now)
			if !ok {
				return t, "ERR invalid expire time in 'set' command"
			}
			t.Life = life
		case equalFold(o, "KEEPTTL") || equalFold(o, "GET"):
			return t, "ERR the KV cache does not know SET's option " + printable(o)
		default:
			return t, syntax
		}
	}
	return t, ""
}

func isLife(option []byte) bool {
	for _, name := range []string{"EX", "PX", "EXAT", "PXAT"} {
		if equalFold(option, name) {
			return true
		}
	}
	return false
}

// lifeOf returns the life that EX, PX, EXAT or PXAT and its number set. A time in the past gives a nanosecond.
func lifeOf(option []byte, n int64, now time.Time) (time.Duration, bool) {
	unit := time.Millisecond
	if equalFold(option[:2], "EX") {
		unit = time.Second
	}
	if n <= 0 {
		return 0, false
	}
	if len(option) == 4 { // a time of day
		if n > math.MaxInt64/int64(unit) {
			return 0, false
		}
		return max(time.Unix(0, n*int64(unit)).Sub(now), 1), true
	}
	if n > math.MaxInt64/int64(unit)/2 { // more than a hundred years
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// runGet returns the value or a miss, and never an error: LMCache's native client would take an error for the value. It
// recognises this client before AUTH by the first commands (see conn.named).
func runGet(c *conn, args [][]byte) error {
	if !c.authorized {
		if c.named {
			c.failed("NOAUTH Authentication required.")
		} else {
			c.out.null()
		}
		return nil
	}
	return c.answerValue(args[1])
}

func (c *conn) answerValue(key []byte) error {
	l := c.get(key)
	if l == nil {
		c.server.counts.misses.Add(1)
		c.out.null()
		return nil
	}
	c.server.counts.hits.Add(1)
	defer l.Release()
	return c.out.value(l.Size(), l.Pieces())
}

func runMGet(c *conn, args [][]byte) error {
	c.out.array(len(args) - 1)
	for _, key := range args[1:] {
		if err := c.answerValue(key); err != nil {
			return err
		}
	}
	return nil
}

// runExists promises the values that it finds: see doc.go.
func runExists(c *conn, args [][]byte) error {
	n := int64(0)
	for _, key := range args[1:] {
		if c.exists(c.key(key)) {
			n++
		}
	}
	c.out.number(n)
	return nil
}

// exists reports whether a key is there, and promises its value. It promises nothing to a daemon of the pool, which
// promises to its own clients. LMCache's native client waits for ever for a promised value.
func (c *conn) exists(key string) bool {
	s, promise := c.server.config.Store, c.server.config.Promise
	switch {
	case c.peer:
		return c.view.Has(key)
	case c.named:
		return s.Exists(key, c.owner, promise)
	}
	return s.Promise(key, c.owner, promise)
}

func runDel(c *conn, args [][]byte) error {
	n := int64(0)
	for _, key := range args[1:] {
		if c.view.Delete(c.key(key)) {
			n++
		}
	}
	c.out.number(n)
	return nil
}

// runStrlen returns 0 also for a value that only L2 has: it requests no length from a server.
func runStrlen(c *conn, args [][]byte) error {
	size, _, _ := c.server.config.Store.Info(c.key(args[1]))
	c.out.number(size)
	return nil
}

// runTTL returns the rest of a value's life: -1 = no end, -2 = no value.
func runTTL(c *conn, args [][]byte, unit time.Duration) error {
	_, end, ok := c.server.config.Store.Info(c.key(args[1]))
	switch {
	case !ok:
		c.out.number(-2)
	case end.IsZero():
		c.out.number(-1)
	default:
		c.out.number(int64(math.Round(float64(max(time.Until(end), 0)) / float64(unit))))
	}
	return nil
}

// flushedOnce is how many keys one command deletes: some 10 ms, as the daemon that sends it waits half a second at
// most.
const flushedOnce = 1000

// runFlush deletes a page of this daemon's own keys with a prefix, for a daemon of the same pool. It returns how many
// it deleted, and where the next page begins, or "" after the last page.
func runFlush(c *conn, args [][]byte) error {
	if !c.peer {
		c.failed(unknown(args))
		return nil
	}
	page := c.server.config.Store.Page(string(args[1]), string(args[2]), flushedOnce)
	n, next := int64(0), ""
	for _, l := range page {
		if (l.Memory || l.Disk) && c.view.Delete(l.Key) {
			n++
		}
	}
	if len(page) == flushedOnce {
		next = page[flushedOnce-1].Key
	}
	c.out.array(2)
	c.out.number(n)
	c.out.bulk(next)
	return nil
}

// runPublish passes a message between daemons of the pool to Config.Pool. The door has no subscribers.
func runPublish(c *conn, args [][]byte) error {
	if !c.peer || c.server.config.Pool == nil {
		c.failed(unknown(args))
		return nil
	}
	if err := c.server.config.Pool.Hear(args[2]); err != nil {
		c.failed("ERR " + err.Error())
		return nil
	}
	c.out.number(1)
	return nil
}
