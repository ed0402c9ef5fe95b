package resp

import (
	"fmt"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// Page by page, so that no other client waits long; and no further, as INFO comes every few seconds.
const (
	countedAtOnce = 1000
	mostCounted   = 100_000
)

// keyspace returns the lines of INFO's section Keyspace in Redis's form, from which exporters read the number of keys.
// Nearly all keys are in database 0: only those of the others are counted one by one. In memory, as DBSIZE.
func keyspace(s *kvstore.Store, databases int, entries uint64) (pairs []any) {
	others := uint64(0)
	for db := 1; db < databases; db++ {
		if n := countKeys(s, string([]byte{'r', byte(db)})); n > 0 {
			others += n
			pairs = append(pairs, fmt.Sprintf("db%d", db), keysLine(n))
		}
	}
	if entries > others {
		pairs = append([]any{"db0", keysLine(entries - others)}, pairs...)
	}
	return pairs
}

func keysLine(n uint64) string { return fmt.Sprintf("keys=%d,expires=0,avg_ttl=0", n) }

// countKeys counts the keys in memory that begin with the prefix, up to mostCounted.
func countKeys(s *kvstore.Store, prefix string) (n uint64) {
	after := ""
	for range mostCounted / countedAtOnce {
		page := s.Page(prefix, after, countedAtOnce)
		for i := range page {
			if page[i].Memory {
				n++
			}
		}
		if len(page) < countedAtOnce {
			break
		}
		after = page[len(page)-1].Key
	}
	return n
}
