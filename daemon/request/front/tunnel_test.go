package front

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestFrames: the end of each frame is found however the bytes are cut, and a close frame.
func TestFrames(t *testing.T) {
	var stream []byte
	ends := map[int]bool{0: true}
	for _, size := range []int{0, 1, 125, 126, 127, 65535, 65536, 70000} {
		for _, mask := range []byte{0, 0x80} {
			switch {
			case size < 126:
				stream = append(stream, 0x82, mask|byte(size))
			case size < 1<<16:
				stream = binary.BigEndian.AppendUint16(append(stream, 0x01, mask|126), uint16(size))
			default:
				stream = binary.BigEndian.AppendUint64(append(stream, 0x80, mask|127), uint64(size))
			}
			stream = append(stream, make([]byte, size+int(mask>>7)*4)...)
			ends[len(stream)] = true
		}
	}
	f := frames{}
	for at := 0; at < len(stream); {
		n := min(1+rand.IntN(200), len(stream)-at)
		f.pass(stream[at : at+n])
		at += n
		if f.whole() != ends[at] || f.closed.Load() {
			t.Fatalf("after %d bytes: whole %v, closed %v; want %v", at, f.whole(), f.closed.Load(), ends[at])
		}
	}
	f.pass([]byte{0x88, 2, 3})
	if !f.closed.Load() || f.whole() {
		t.Error("a close frame that begins is not seen")
	}
	f = frames{}
	f.pass(append([]byte{0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 100)...))
	if f.whole() {
		t.Error("a frame without end ends")
	}
}
