// Policies counts how often block ids of a trace would have been found in a cache of three sizes, under the policies of
// cache/kvstore/evict and under those of two well-kept libraries. It has a module of its own, so that the libraries are
// no dependency of the program.
//
//	cd testdata/bench/policies && go run . FILE.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/maypok86/otter/v2"

	"github.com/warmpath/warmpath/cache/kvstore/evict"
)

// sizes are shares of the trace's different blocks.
var sizes = []float64{0.01, 0.05, 0.2}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: policies FILE.jsonl")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	ids, different, err := readTrace(file)
	if err != nil {
		return err
	}
	fmt.Printf("%d reads of %d blocks\n\n| policy |", len(ids), different)
	for _, s := range sizes {
		fmt.Printf(" %d blocks |", int(s*float64(different)))
	}
	fmt.Print("\n| --- |")
	for range sizes {
		fmt.Print(" --- |")
	}
	fmt.Println()
	caches := []struct {
		name string
		make func(size int) (get func(id uint64) bool)
	}{
		{"evict lru", func(n int) func(uint64) bool { return own("lru", n) }},
		{"evict s3fifo", func(n int) func(uint64) bool { return own("s3fifo", n) }},
		{"evict fifo", func(n int) func(uint64) bool { return own("fifo", n) }},
		{"otter (W-TinyLFU)", otterCache},
		{"ristretto (TinyLFU, sampled)", ristrettoCache},
	}
	for _, c := range caches {
		fmt.Printf("| %s |", c.name)
		for _, s := range sizes {
			get := c.make(int(s * float64(different)))
			hits := 0
			for _, id := range ids {
				if get(id) {
					hits++
				}
			}
			fmt.Printf(" %.4f |", float64(hits)/float64(len(ids)))
		}
		fmt.Println()
	}
	return nil
}

// readTrace returns the block ids in the order of the requests.
func readTrace(file string) (ids []uint64, different int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	seen := map[uint64]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			HashIDs []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return nil, 0, err
		}
		for _, id := range request.HashIDs {
			seen[id] = true
		}
		ids = append(ids, request.HashIDs...)
	}
	return ids, len(seen), lines.Err()
}

// own reads through a policy of cache/kvstore/evict; a miss puts the block.
func own(name string, size int) func(uint64) bool {
	p, err := evict.New[uint64](name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	held := map[uint64]*evict.Item[uint64]{}
	return func(id uint64) bool {
		if i := held[id]; i != nil {
			p.Touch(i)
			return true
		}
		if len(held) >= size {
			delete(held, p.Victim(func(*evict.Item[uint64]) bool { return true }).Value)
		}
		held[id] = &evict.Item[uint64]{Value: id, Size: 1, Hash: id * 0x9e3779b97f4a7c15}
		p.Add(held[id])
		return false
	}
}

// otterCache evicts at once, so that no size is exceeded.
func otterCache(size int) func(uint64) bool {
	c := otter.Must(&otter.Options[uint64, bool]{MaximumSize: size, Executor: func(f func()) { f() }})
	return func(id uint64) bool {
		if _, ok := c.GetIfPresent(id); ok {
			return true
		}
		c.Set(id, true)
		c.CleanUp()
		return false
	}
}

// ristrettoCache waits for its own buffers: it would drop puts that come too fast.
func ristrettoCache(size int) func(uint64) bool {
	c, err := ristretto.NewCache(&ristretto.Config[uint64, bool]{NumCounters: int64(size) * 10, MaxCost: int64(size),
		BufferItems: 64, IgnoreInternalCost: true})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return func(id uint64) bool {
		if _, ok := c.Get(id); ok {
			return true
		}
		c.Set(id, true, 1)
		c.Wait()
		return false
	}
}
