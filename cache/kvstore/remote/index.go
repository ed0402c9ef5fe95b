package remote

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"
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

// index holds what this daemon knows of the servers' values. It has two halves: when the newer half is full, the older
// one is dropped with all facts that were not used meanwhile.
type index struct {
	mu         sync.Mutex // guards all below
	newer      map[mark]fact
	older      map[mark]fact
	absent     map[mark]time.Time // values that the servers lacked a moment ago
	wasAbsent  map[mark]time.Time
	halfLength int
}

const (
	halfLength  = 1 << 19 // some 56 bytes each: 60 MB in all
	absentTime  = time.Second
	absentCount = 1 << 16
)

func newIndex() *index { return &index{halfLength: halfLength} }

// find returns the fact of a value that the servers have.
func (x *index) find(m mark, now time.Time) (fact, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.get(m, now)
}

func (x *index) get(m mark, now time.Time) (fact, bool) {
	f, ok := x.either(m)
	if !ok {
		return f, false
	}
	if _, newer := x.newer[m]; !newer {
		x.put(m, f)
	}
	if f.over(now) {
		delete(x.newer, m)
		delete(x.older, m)
		return f, false
	}
	return f, true
}

func (x *index) put(m mark, f fact) {
	if x.newer == nil || len(x.newer) >= x.halfLength {
		x.older = x.newer
		x.newer = map[mark]fact{}
	}
	x.newer[m] = f
}

// add records that the servers have a value.
func (x *index) add(m mark, f fact) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.at = time.Now().UnixNano()
	f.came = f.came || x.newer[m].came || x.older[m].came
	x.put(m, f)
	delete(x.absent, m)
	delete(x.wasAbsent, m)
}

// forget records that the servers do not have a value.
func (x *index) forget(m mark) (had bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, a := x.newer[m]
	_, b := x.older[m]
	delete(x.newer, m)
	delete(x.older, m)
	return a || b
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
	if _, known := x.either(m); known {
		x.lack(m, asked)
	}
}

// lack is miss. The caller holds x.mu.
func (x *index) lack(m mark, asked time.Time) {
	if f, ok := x.either(m); ok && f.at >= asked.UnixNano() {
		return
	}
	delete(x.newer, m)
	delete(x.older, m)
	if x.absent == nil || len(x.absent) >= absentCount {
		x.wasAbsent = x.absent
		x.absent = map[mark]time.Time{}
	}
	x.absent[m] = asked
}

func (x *index) either(m mark) (fact, bool) {
	f, ok := x.newer[m]
	if !ok {
		f, ok = x.older[m]
	}
	return f, ok
}

// missed reports whether the servers lacked the value a moment ago.
func (x *index) missed(m mark, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.absent[m]
	if !ok {
		at, ok = x.wasAbsent[m]
	}
	return ok && now.Sub(at) < absentTime
}

func (x *index) length() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.newer) + len(x.older)
}
