package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// putChunk puts what LMCache puts for a chunk of 256 tokens of 1 KiB each: the bytes, then the metadata.
func putChunk(t *testing.T, address, key string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	var metadata []byte
	for _, n := range []uint32{256 << 10, 1, 3, 2, 2, 256, 128} {
		metadata = binary.LittleEndian.AppendUint32(metadata, n)
	}
	set := func(key string, value []byte) {
		fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
		answer := make([]byte, 5)
		if _, err := c.Read(answer); err != nil || string(answer) != "+OK\r\n" {
			t.Fatalf("SET answered %q, %v", answer, err)
		}
	}
	set(key+"kv_bytes", bytes.Repeat([]byte("x"), 256<<10))
	set(key+"metadata", metadata)
}

// With a door of the KV cache open, the shared tier's size follows from what LMCache puts there: the pools that leave it
// open have it in equal parts, and what the configuration says of a pool holds, at a reload too.
func TestTheKVCacheIsTheSharedTier(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	var b strings.Builder
	b.WriteString(settings("prefixaware", f.URLs()[0]))
	text := strings.Replace(b.String(), `models = ["*"]`, `models = ["sim"]`, 1)
	b.Reset()
	addPool(&b, "other", "prefixaware", "other", f.URLs()[1])
	cache := "[kv_cache]\nresp = '127.0.0.1:0'\nmax_bytes = 33554432\n"
	r := start(t, text+b.String()+cache, 2)
	expect := func(what string, main, other int) {
		t.Helper()
		pools := r.state.Load().pools
		got := [2]int{pools[0].route.SharedTokens(), pools[1].route.SharedTokens()}
		for i, want := range []int{main, other} {
			if got[i] < want*99/100 || got[i] > want*101/100 {
				t.Errorf("%s: the pools have %v tokens; want %d, %d", what, got, main, other)
				return
			}
		}
	}
	reload := func(file string) {
		t.Helper()
		write(t, r.file, file)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	expect("nothing was put", 0, 0)
	putChunk(t, r.kvCache.RESPAddr(), "org/m@1@0@ab@half")
	room := 33554432 * 31 / 32 / 1024
	expect("one chunk was put", room/2, room/2)
	reload(strings.Replace(text, `name = "main"`, "name = 'main'\nshared_kv_tokens = 5000", 1) + b.String() + cache)
	expect("one is configured", 5000, room)
	reload(strings.Replace(text, `name = "main"`, "name = 'main'\nshared_kv_tokens = -1", 1) + b.String() + cache)
	expect("one has none", 0, room)
	reload(text + b.String() + cache)
	expect("as at first", room/2, room/2)
}
