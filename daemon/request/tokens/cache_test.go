package tokens

import (
	"slices"
	"sync"
	"testing"
)

func textOf(s string) digest { return digestOf([]byte(s)) }

func TestCacheForgetsTheLeastUsed(t *testing.T) {
	c := newCache(3 * (entryBytes + 4*idBytes)) // some 648 bytes
	for _, s := range []string{"a", "b", "c"} {
		c.put([]uint32{1, 2, 3, uint32(s[0])}, []digest{textOf(s)}, []int{4})
	}
	if ids, ok := c.get(textOf("a")); !ok || !slices.Equal(ids, []uint32{1, 2, 3, 'a'}) {
		t.Fatalf("a is %v, %v", ids, ok)
	}
	c.put([]uint32{9, 9, 9, 9}, []digest{textOf("d")}, []int{4})
	if _, ok := c.get(textOf("b")); ok {
		t.Error("b, used least recently, is still there")
	}
	if bytes, texts := c.size(); texts != 3 || bytes != c.max {
		t.Errorf("%d bytes in %d texts; want %d in 3", bytes, texts, c.max)
	}
	c.resize(0)
	if bytes, texts := c.size(); texts != 0 || bytes != 0 {
		t.Errorf("%d bytes in %d texts are left of nothing", bytes, texts)
	}
}

// Texts of which one continues the other share their ids.
func TestCacheSharesRuns(t *testing.T) {
	c := newCache(1 << 20)
	c.put([]uint32{1, 2, 3, 4, 5}, []digest{textOf("1..3"), textOf("1..5")}, []int{3, 5})
	if ids, _ := c.get(textOf("1..3")); !slices.Equal(ids, []uint32{1, 2, 3}) || cap(ids) != 3 {
		t.Errorf("1..3 is %v of capacity %d", ids, cap(ids))
	}
	if bytes, _ := c.size(); bytes != 2*entryBytes+5*idBytes {
		t.Errorf("%d bytes; want the ids once", bytes)
	}
	c.put([]uint32{1, 2, 3, 4, 5, 6}, []digest{textOf("1..3"), textOf("1..6")}, []int{3, 6})
	c.put([]uint32{7}, []digest{textOf("1..5")}, []int{1})
	if bytes, texts := c.size(); bytes != 3*entryBytes+7*idBytes || texts != 3 {
		t.Errorf("%d bytes in %d texts; a run that nobody begins with is counted", bytes, texts)
	}
}

func TestCacheHammer(t *testing.T) {
	c := newCache(50 * entryBytes)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				key := digest{uint64(i*7+g) % 100}
				if ids, ok := c.get(key); ok && ids[0] != uint32(key[0]) {
					t.Errorf("%v holds %v", key, ids)
				}
				c.put([]uint32{uint32(key[0]), 1}, []digest{key}, []int{2})
			}
		})
	}
	all.Wait()
	c.resize(0)
	if bytes, texts := c.size(); bytes != 0 || texts != 0 {
		t.Errorf("%d bytes in %d texts are left of nothing", bytes, texts)
	}
}

// size returns the bytes and the texts in the cache.
func (c *cache) size() (bytes, texts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes, c.used.Len()
}
