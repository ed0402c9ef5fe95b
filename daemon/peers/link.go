package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/cache/tier"
)

const (
	// callTimeout bounds one call of Redis. No request waits for such a call.
	callTimeout = time.Second
	// readBlock is how long a read waits for new entries. A pool that a reload adds is read only after that.
	readBlock = 250 * time.Millisecond
	// readCount bounds the entries of one read: with frames of fullFrame they stay far below maxReply.
	readCount = 128
	maxReply  = 64 << 20
	// replayTimeout bounds a call for which Redis may copy an oversized entry. Requests are served meanwhile.
	replayTimeout = 5 * time.Second
	// shrink divides the number of entries of a read whose reply was too large. Each try makes Redis copy the oversized
	// entries.
	shrink = 8
	// maxTries is how often a replay reads a page again after a failure.
	maxTries = 3
	backOff  = 200 * time.Millisecond // after a failure
	// markLife is how long the mark of a router that ended stands.
	markLife = time.Minute
	// youth is how long routers that are older than a secret may replace it by theirs: some routers notice later than
	// others that Redis is back.
	youth = 10 * time.Second
)

// link is the Redis between the routers. It has a stream for each pool, the secret, and the clock to which all times
// refer.
type link struct {
	c      *goredis.Client
	addr   string
	prefix string
	offset atomic.Int64 // nanoseconds from this process's clock to Redis's
	timed  atomic.Bool  // offset has been measured
	mark   string       // a key that only this router uses
	marked bool         // the key was set
}

func newLink(url string, security *tls.Config, prefix string, self uint64) (*link, error) {
	c, err := tier.Connect(url, security, tier.Bounds{Bytes: maxReply, Reply: replayTimeout, Pool: callTimeout,
		Least: 8})
	if err != nil {
		return nil, err
	}
	prefix = goredis.Tagged(prefix)
	return &link{c: c, addr: c.Addr, prefix: prefix, mark: fmt.Sprintf("%shistory-mark/%016x", prefix, self)}, nil
}

func (l *link) stream(pool string) string { return l.prefix + "history/" + pool }
func (l *link) secret() string            { return l.prefix + "history-secret" }
func (l *link) young() string             { return l.prefix + "history-secret-young" }
func (l *link) modules() string           { return l.prefix + "history-modules" }
func (l *link) module(name string) string { return l.prefix + "history-module/" + name }

// timeOf returns when an entry was added, by this process's clock. The result is never in the future.
func (l *link) timeOf(id string, now time.Time) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || !l.timed.Load() {
		return now
	}
	at := time.UnixMilli(n).Add(-time.Duration(l.offset.Load()))
	age := now.Round(0).Sub(at) // by the time of day, the only clock of Redis
	return now.Add(-max(0, age))
}

// secretIs stores s as the secret of all routers if Redis has none, and returns the stored secret. With s = "" it
// leaves the secret alone. It also measures Redis's clock, and checks for the mark that the last call left there:
// forgot is true if the mark is gone. In that case s replaces a young secret, which a router has made that started
// since and holds no history yet.
func (l *link) secretIs(ctx context.Context, s string) (stands string, forgot bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var secret *redis.StringCmd
	var clock *redis.TimeCmd
	var marked *redis.StatusCmd
	var young *redis.IntCmd
	asked := time.Now()
	if _, err := l.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		clock = p.Time(ctx)
		if s != "" {
			p.MSetNX(ctx, l.secret(), s, l.young(), "1") // both or none
			p.ExpireNX(ctx, l.young(), youth)
			secret, young = p.Get(ctx, l.secret()), p.Exists(ctx, l.young())
		}
		marked = p.SetArgs(ctx, l.mark, "1", redis.SetArgs{Get: true, TTL: markLife})
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return "", false, l.wrapError(err)
	}
	forgot = l.marked && errors.Is(marked.Err(), redis.Nil)
	l.marked = true
	took := time.Since(asked)
	if took < 50*time.Millisecond || !l.timed.Load() {
		l.offset.Store(int64(clock.Val().Sub(asked.Round(0).Add(took / 2))))
		l.timed.Store(true)
	}
	if secret == nil {
		return "", forgot, nil
	}
	stands = secret.Val()
	if forgot && stands != s && young.Val() > 0 {
		if err := l.c.Set(ctx, l.secret(), s, 0).Err(); err != nil {
			return "", forgot, l.wrapError(err)
		}
		stands = s
	}
	return stands, forgot, nil
}

// batch holds the frames of one pool for one write.
type batch struct {
	stream string
	frames [][]byte
	most   int64 // entries that the stream keeps
}

// exchanged is the result of an exchange.
type exchanged struct {
	taken   []int    // of each batch, how many of its frames the stream took
	last    []string // id of the last of these
	errs    []error  // why the stream did not take the others
	got     map[string][]message
	readErr error
}

// exchange appends frames, and reads the entries of each stream after the given ids, in one round trip that waits for
// nothing. A Redis that is full refuses the frames and still answers the read.
func (l *link) exchange(ctx context.Context, all []batch, streams, after []string) (x exchanged) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var read *redis.XStreamSliceCmd
	cmds, _ := l.c.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for _, b := range all {
			for _, f := range b.frames {
				p.XAdd(ctx, &redis.XAddArgs{Stream: b.stream, MaxLen: b.most, Approx: true, Values: []any{"f", f}})
			}
		}
		if len(streams) > 0 {
			read = p.XRead(ctx, &redis.XReadArgs{Streams: append(streams, after...), Count: readCount, Block: -1})
		}
		return nil
	})
	x.taken, x.last, x.errs = make([]int, len(all)), make([]string, len(all)), make([]error, len(all))
	for i, b := range all {
		for k := range b.frames {
			c := cmds[k].(*redis.StringCmd)
			if c.Err() != nil {
				x.errs[i] = l.wrapError(c.Err())
				break
			}
			x.taken[i], x.last[i] = k+1, c.Val()
		}
		cmds = cmds[len(b.frames):]
	}
	if read != nil {
		x.got, x.readErr = l.entriesOf(read)
	}
	return x
}

// entriesOf returns the entries of a read by stream. A read without new entries is no error.
func (l *link) entriesOf(read *redis.XStreamSliceCmd) (map[string][]message, error) {
	got, err := read.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, l.wrapError(err)
	}
	all := make(map[string][]message, len(got))
	for _, s := range got {
		all[s.Stream] = entries(s.Messages)
	}
	return all, nil
}

// message is one message of a stream.
type message struct {
	id    string
	frame []byte
}

func entries(messages []redis.XMessage) (all []message) {
	for _, m := range messages {
		frame, _ := m.Values["f"].(string)
		all = append(all, message{m.ID, []byte(frame)})
	}
	return all
}

// read returns at most n entries of each stream after the given ids. It waits up to block for one; -1 = not at all. A
// read without new entries is no error.
func (l *link) read(ctx context.Context, streams, after []string, n int64, block time.Duration) (map[string][]message,
	error) {
	most := callTimeout + readBlock
	if block < 0 {
		most = replayTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ask := redis.XReadArgs{Streams: append(streams, after...), Count: n, Block: block}
	return l.entriesOf(l.c.XRead(ctx, &ask))
}

// readBefore returns at most n entries before an id, the newest first. The id "+" is the end of the stream.
func (l *link) readBefore(ctx context.Context, stream, id string, n int64) ([]message, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	got, err := l.c.XRevRangeN(ctx, stream, upTo(id), "-", n).Result()
	if err != nil {
		return nil, l.wrapError(err)
	}
	return entries(got), nil
}

// smaller returns how many entries to read after n were too large together. It returns 0 if a single one was.
func smaller(n int64) int64 {
	if n == 1 {
		return 0
	}
	return max(1, n/shrink)
}

// upTo returns the end of a range that holds the entries before an id.
func upTo(id string) string {
	if id == "+" {
		return id
	}
	return "(" + id
}

// readBack reads a stream backwards until it has want bytes of it, and returns the entries, the newest first. It splits
// a page that is too large for a reply, and calls passOver for an entry that is too large alone. It repeats a page that
// fails. When it gives up, it returns the error together with the entries read before. It calls found with the number
// of entries so far.
func (l *link) readBack(ctx context.Context, stream string, want int, found func(n int), passOver func(id string)) (
	back []message, err error) {
	n, tries := int64(readCount), 0
	for bytes, id := 0, "+"; bytes < want; {
		page, err := l.readBefore(ctx, stream, id, n)
		switch {
		case tooLarge(err) && n > 1:
			n = smaller(n)
			continue
		case tooLarge(err):
			id, err = l.idOf(ctx, "XREVRANGE", stream, upTo(id), "-")
			if err != nil {
				return back, err
			}
			passOver(id)
			n = readCount
			continue
		case err != nil && tries < maxTries:
			tries++
			wait(ctx, backOff)
			continue
		case err != nil, len(page) == 0:
			return back, err
		}
		for _, e := range page {
			bytes += len(e.frame)
		}
		back = append(back, page...)
		id, n, tries = page[len(page)-1].id, min(shrink*n, readCount), 0
		found(len(back))
	}
	return back, nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// idOf returns the id of the first entry that XRANGE or XREVRANGE finds. The entry itself is too large to be read.
func (l *link) idOf(ctx context.Context, find, stream, from, to string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	const script = "return redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'COUNT', 1)[1][1]"
	id, err := l.c.EvalRO(ctx, script, []string{stream}, find, from, to).Text()
	if err != nil {
		return "", l.wrapError(err)
	}
	return id, nil
}

// restart deletes a stream whose last id is the last possible one. Of several routers that do so at once, only the
// first deletes.
func (l *link) restart(ctx context.Context, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const script = `local s = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #s, 2 do
  if s[i] == 'last-generated-id' and s[i+1] == ARGV[1] then return redis.call('DEL', KEYS[1]) end
end
return 0`
	const last = "18446744073709551615-18446744073709551615"
	if err := l.c.Eval(ctx, script, []string{stream}, last).Err(); err != nil {
		return l.wrapError(err)
	}
	return nil
}

// wrapError wraps an error of Redis without the URL, which may hold a password.
func (l *link) wrapError(err error) error { return fmt.Errorf("peers: Redis at %s: %w", l.addr, err) }

func (l *link) close() error { return l.c.Close() }

// errLarge is the error of an entry that does not fit into any reply.
var errLarge = errors.New("it is larger than anything that a router writes")

// isReply reports whether err is Redis's own reply: it is there, and does not do what was asked of it.
func isReply(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// readable returns an error if a stream cannot be read.
func (l *link) readable(ctx context.Context, stream string) error {
	_, err := l.readBefore(ctx, stream, "+", 1)
	if tooLarge(err) {
		return nil
	}
	return err
}

// tooLarge reports whether err means an oversized reply, and not a lost connection.
func tooLarge(err error) bool {
	var failed net.Error
	return err != nil && !errors.As(err, &failed) && strings.Contains(err.Error(), "larger than anything")
}

// less reports whether the entry id a comes before b.
func less(a, b string) bool {
	at, an := parts(a)
	bt, bn := parts(b)
	return at < bt || at == bt && an < bn
}

func parts(id string) (ms, n uint64) {
	a, b, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(a, 10, 64)
	n, _ = strconv.ParseUint(b, 10, 64)
	return ms, n
}
