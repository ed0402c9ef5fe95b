package session

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestAStoredBindingInBytes(t *testing.T) {
	b := Binding{Worker: "w1", Kind: Opened, Minted: true, WorkerSession: "s-9", Created: time.UnixMilli(1).UTC(), Expires: time.Unix(64, 0).UTC()}
	want := []byte{1, 0, 0, 1, 2, 0x80, 0x01, 2, 'w', '1', 3, 's', '-', '9'} // varints are zigzag: 1 is 2, 64 is 128
	if got := b.encode(); !bytes.Equal(got, want) {
		t.Fatalf("% x; want % x", got, want)
	}
	f := func(what string, v []byte, ok bool) {
		t.Helper()
		got, err := decode(v)
		if (err == nil) != ok || ok && got != b {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	f("as written", want, true)
	f("with what a newer router added", append(bytes.Clone(want), 7, 7), true)
	f("another version", append([]byte{2}, want[1:]...), false)
	f("a state from the future", append([]byte{1, 99}, want[2:]...), false)
	f("a kind from the future", append([]byte{1, 0, 99}, want[3:]...), false)
	for i := range want {
		f("cut", want[:i], false)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range []Binding{{}, {Worker: "http://10.0.0.1:8000", Kind: Key, Created: time.Now()},
		{Worker: "w", Minted: true, WorkerSession: strings.Repeat("a", 256), Created: time.Now(), Expires: time.Now(), state: Closed}} {
		f.Add(b.encode())
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		b, err := decode(v)
		if err != nil {
			return
		}
		again, err := decode(b.encode())
		if err != nil || again != b {
			t.Fatalf("% x is %+v, written again it is %+v, %v", v, b, again, err)
		}
	})
}

func TestNamesAreWordsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for k := range kinds + 2 {
		seen[k.String()] = true
	}
	for s := range statuses + 2 {
		seen["is "+s.String()] = true
	}
	if len(seen) != int(kinds)+int(statuses)+2 {
		t.Fatalf("names repeat or are missing: %v", seen)
	}
}
