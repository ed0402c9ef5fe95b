//go:build linux

package hugepages

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped returns memory of so many huge pages, from the beginning of one on.
func mapped(t *testing.T, size uintptr, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, (n+1)*int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	before := (size - address(mem)%size) % size
	return mem[before : before+uintptr(n)*size]
}

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// huge returns the bytes of huge pages in the mapping that holds an address, by /proc/self/smaps.
func huge(t *testing.T, at uintptr) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`(?m)^[0-9a-f]+-[0-9a-f]+ .*$`)
	all := head.FindAllIndex(text, -1)
	for i, place := range all {
		from, to, err := mapping(bytes.NewReader(text[place[0]:place[1]]), at)
		if err != nil || at < from || at >= to {
			continue
		}
		end := len(text)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		kb := regexp.MustCompile(`AnonHugePages: +(\d+) kB`).FindSubmatch(text[place[0]:end])
		if kb == nil {
			t.Fatal("smaps has no AnonHugePages")
		}
		n, err = strconv.Atoi(string(kb[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n << 10
	}
	t.Fatalf("smaps has no mapping of %x", at)
	return 0
}

// sizeHere returns the bytes of a huge page. It skips the test on a kernel that has none to ask for.
func sizeHere(t *testing.T) uintptr {
	t.Helper()
	size, err := pageSize()
	if err != nil {
		t.Skip("this kernel has no huge pages: ", err)
	}
	mem := mapped(t, size, 1)
	clear(mem)
	mem[0] = 1
	if err := collapse(address(mem), size); err != nil {
		t.Skip("this kernel takes no MADV_COLLAPSE: ", err)
	}
	return size
}

// A stretch that is in memory as a whole gets a huge page and keeps its bytes. One with a hole stays as it is, and
// takes no more memory; it gets its page once the hole is filled.
func TestAsk(t *testing.T) {
	size := sizeHere(t)
	mem := mapped(t, size, 3)
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	hole := mem[int(size)+5*os.Getpagesize():][:os.Getpagesize()]
	if err := unix.Madvise(hole, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	h := heap{size: size, asked: map[uintptr]struct{}{}}
	before := huge(t, address(mem)) // of mappings that the kernel has joined with it
	asked := func(want int) {
		t.Helper()
		if err := h.ask(context.Background(), address(mem), address(mem)+uintptr(len(mem))); err != nil {
			t.Fatal(err)
		}
		if got := huge(t, address(mem)) - before; got != want*int(size) {
			t.Errorf("%d bytes of huge pages, want %d pages", got, want)
		}
	}
	asked(2)
	if present(address(mem)+size, size) {
		t.Error("the hole is filled")
	}
	for i := range hole {
		hole[i] = byte((int(size) + 5*os.Getpagesize() + i) * 7)
	}
	asked(3)
	for i, b := range mem {
		if b != byte(i*7) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
}

// The heap is found, and gets huge pages.
func TestHeapGetsHugePages(t *testing.T) {
	size := sizeHere(t)
	mem := make([]byte, 16*size)
	for i := range mem {
		mem[i] = 1
	}
	from, to, err := goHeap()
	if err != nil {
		t.Fatal(err)
	}
	if at := address(mem); at < from || at >= to {
		t.Fatalf("the heap is taken to be %x-%x: %x is not in it", from, to, at)
	}
	h := heap{size: size, asked: map[uintptr]struct{}{}}
	if err := h.ask(context.Background(), from, to); err != nil {
		t.Fatal(err)
	}
	if got := huge(t, address(mem)); got < 14*int(size) {
		t.Errorf("%d bytes of huge pages for %d bytes", got, len(mem))
	}
	if bytes.Count(mem, []byte{1}) != len(mem) {
		t.Error("its bytes are others now")
	}
}

func TestMapping(t *testing.T) {
	const maps = "00400000-0164c000 r-xp 00000000 fe:00 99 /warmpath\n2d12e4c00000-2d12ed000000 rw-p 00000000 00:00 0 \n"
	for address, want := range map[uintptr][2]uintptr{0x400000: {0x400000, 0x164c000}, 0x164bfff: {0x400000, 0x164c000},
		0x2d12e4c00010: {0x2d12e4c00000, 0x2d12ed000000}} {
		from, to, err := mapping(strings.NewReader(maps), address)
		if err != nil || from != want[0] || to != want[1] {
			t.Errorf("%x: %x-%x, %v, want %x", address, from, to, err, want)
		}
	}
	for _, bad := range []string{maps, "", "no map\n"} {
		if from, to, err := mapping(strings.NewReader(bad), 0x164c000); err == nil {
			t.Errorf("%q: %x-%x", bad, from, to)
		}
	}
}
