package msgpack

import (
	"encoding/hex"
	"math"
	"reflect"
	"testing"
)

// TestVectors: the bytes are those that Python's msgspec 0.21 writes.
func TestVectors(t *testing.T) {
	f := func(want string, got []byte, value any) {
		t.Helper()
		if s := hex.EncodeToString(got); s != want {
			t.Errorf("%v is written %s, want %s", value, s, want)
		}
		if back, err := Decode(got); err != nil || !reflect.DeepEqual(back, value) {
			t.Errorf("%s is read as %v (%T), want %v: %v", want, back, back, value, err)
		}
	}
	f("c0", AppendNil(nil), nil)
	f("7f", AppendUint(nil, 127), uint64(127))
	f("cc80", AppendUint(nil, 128), uint64(128))
	f("cd0100", AppendUint(nil, 256), uint64(256))
	f("ce00010000", AppendUint(nil, 65536), uint64(65536))
	f("cff1f2f3f4f5f6f7f8", AppendUint(nil, 0xf1f2f3f4f5f6f7f8), uint64(0xf1f2f3f4f5f6f7f8))
	f("e0", AppendInt(nil, -32), int64(-32))
	f("d0df", AppendInt(nil, -33), int64(-33))
	f("d1ff7f", AppendInt(nil, -129), int64(-129))
	f("d2ffff7fff", AppendInt(nil, -32769), int64(-32769))
	f("d3ffffffff7fffffff", AppendInt(nil, math.MinInt32-1), int64(math.MinInt32-1))
	f("cb3ff8000000000000", AppendFloat(nil, 1.5), 1.5)
	f("a3475055", AppendString(nil, "GPU"), "GPU")
	f("92c001", AppendUint(AppendNil(AppendArray(nil, 2)), 1), []any{nil, uint64(1)})
	f("81a16101", AppendUint(AppendString(AppendMap(nil, 1), "a"), 1), map[string]any{"a": uint64(1)})
	long := make([]any, 20)
	b := AppendArray(nil, 20)
	for i := range long {
		b = AppendString(b, "0123456789012345678901234567890123456789")
		long[i] = "0123456789012345678901234567890123456789"
	}
	if back, err := Decode(b); err != nil || !reflect.DeepEqual(back, any(long)) {
		t.Errorf("20 texts are read as %v: %v", back, err)
	}
}

// FuzzDecode: no bytes make it panic, or take memory for what they only announce.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"82a474797065af4865617274626561745265744d7367a8636f6d6d616e647390", "ddffffffff", "dfffffffff00",
		"c6ffffffff", "d380", "9191919191919191919191919191919191919191", "c1"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { Decode(b) })
}
