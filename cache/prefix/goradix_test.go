package prefix

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/armon/go-radix"
)

// byteTree is the second oracle: the set of chains that one worker was ever sent, in a go-radix tree of the
// concatenated hashes, in which every branching point is a leaf too. It cannot forget, so it is compared without a
// limit of capacity.
type byteTree struct{ t *radix.Tree }

func key(chain []uint64) string {
	var b strings.Builder
	for _, h := range chain {
		var w [8]byte
		binary.BigEndian.PutUint64(w[:], h)
		b.Write(w[:])
	}
	return b.String()
}

func (b byteTree) touch(chain []uint64) {
	k := key(chain)
	if k == "" {
		return
	}
	if n := b.match(chain); n > 0 {
		b.t.Insert(strings.Clone(k[:8*n]), nil)
	}
	b.t.Insert(k, nil)
}

// match: L is the deepest leaf on the way to K, M the first key that shares one whole block more. A single byte more is
// not enough, since two hashes may share their first bytes.
func (b byteTree) match(chain []uint64) int {
	k := key(chain)
	at := 0
	b.t.WalkPath(k, func(s string, _ any) bool { at = len(s); return false })
	if at == len(k) {
		return at / 8
	}
	n := at
	b.t.WalkPrefix(k[:at+8], func(s string, _ any) bool {
		for n < len(s) && n < len(k) && s[n] == k[n] {
			n++
		}
		return true
	})
	return n / 8
}

func TestGoRadixOracle(t *testing.T) {
	const workers, ops = 4, 40000
	r := rand.New(rand.NewPCG(7, 7))
	n := New(Config{Workers: workers, Capacity: 1 << 30}).Namespace("m")
	var trees [workers]byteTree
	for i := range trees {
		trees[i].t = radix.New()
	}
	var earlier [][]byte
	slots, out := []uint32{0, 1, 2, 3}, make([]uint32, workers)
	compared := 0
	for i := range ops {
		chain := chained(contents(r, &earlier))
		if slot := r.IntN(2 * workers); slot < workers {
			n.Touch(uint32(slot), chain)
			trees[slot].touch(chain)
			continue
		}
		n.Match(chain, slots, out)
		for s := range trees {
			compared++
			if want := trees[s].match(chain); int(out[s]) != want {
				t.Fatalf("op %d: worker %d matches %d of %d; go-radix says %d", i, s, out[s], len(chain), want)
			}
		}
	}
	t.Logf("%d operations, %d answers compared, 0 wrong", ops, compared)
}
