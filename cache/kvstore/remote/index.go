package remote

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/warmpath/warmpath/cache/parts/recent"
)

// mark stands for a key: 64 bits of XXH3. Two of a million keys have the same mark with a chance of 3 in 10^8; then
// EXISTS may return true for a key that is not there. A Get always sends the whole key.
type mark uint64

func markOf(key string) mark { return mark(xxh3.HashString(key)) }

// fact is what the index has about a value at the servers.
type fact struct {
	size  int64
	ends  int64 // Unix ms; 0 = never
	at    int64 // Unix ns, when it was last confirmed; set by add
	came  bool  // a Get has returned it once
	stand stand // of its server at that time: the fact holds as long as the stand is the same
}

func (f fact) over(now time.Time) bool { return f.ends != 0 && now.UnixMilli() >= f.ends }

// stand is a key's server, and how often the servers are known to have lost their values.
type stand struct {
	server *node // of a pool; nil for a Redis
	losses uint64
}

// index holds what this daemon knows of the servers' values, those that were used last.
type index struct {
	mu     sync.Mutex // guards all below
	facts  *recent.Map[mark, fact]
	absent *recent.Map[mark, time.Time] // values that the servers lacked a moment ago
}

const (
	factCount   = 1 << 19 // to twice as many, some 56 bytes each: 60 MB in all
	absentTime  = time.Second
	absentCount = 1 << 16
)

func newIndex() *index {
	return &index{facts: recent.New[mark, fact](factCount), absent: recent.New[mark, time.Time](absentCount)}
}

// find returns the fact of a value that the servers have.
func (x *index) find(m mark, now time.Time) (fact, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.get(m, now)
}

func (x *index) get(m mark, now time.Time) (fact, bool) {
	f, ok := x.facts.Get(m)
	switch {
	case !ok:
		return f, false
	case f.over(now):
		x.facts.Delete(m)
		return f, false
	}
	x.facts.Put(m, f)
	return f, true
}

// add records that the servers have a value.
func (x *index) add(m mark, f fact) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.at = time.Now().UnixNano()
	was, _ := x.facts.Get(m)
	f.came = f.came || was.came
	x.facts.Put(m, f)
	x.absent.Delete(m)
}

// forget records that the servers do not have a value.
func (x *index) forget(m mark) (had bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.facts.Delete(m)
}

// miss records that a query, sent at asked, found no value. A newer fact stays: a put may have overtaken the answer.
func (x *index) miss(m mark, asked time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lack(m, asked)
}

// lose is miss for a value with a fact.
func (x *index) lose(m mark, asked time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.facts.Get(m); known {
		x.lack(m, asked)
	}
}

// lack is miss. The caller holds x.mu.
func (x *index) lack(m mark, asked time.Time) {
	if f, ok := x.facts.Get(m); ok && f.at >= asked.UnixNano() {
		return
	}
	x.facts.Delete(m)
	x.absent.Put(m, asked)
}

// missed reports whether the servers lacked the value a moment ago.
func (x *index) missed(m mark, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.absent.Get(m)
	return ok && now.Sub(at) < absentTime
}

func (x *index) length() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.facts.Len()
}
