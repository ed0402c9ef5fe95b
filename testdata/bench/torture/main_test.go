package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// TestMain lets the test's binary be the client that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-victim" {
		beVictim(os.Args[2])
	}
	os.Exit(m.Run())
}

// TestShort is the short form of the torture.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("starts daemons and torments them for some seconds")
	}
	bin, err := rig.Build(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	length := 8 * time.Second
	r, err := torment(options{bin: bin, length: length})
	for errors.Is(err, errIdle) && length < 2*time.Minute {
		length *= 3
		r, err = torment(options{bin: bin, length: length})
	}
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.Kills == 0 || r.Victims == 0 {
		t.Errorf("too little was broken: %+v", r)
	}
}

// TestCheck: the judge must see each way in which a value can be wrong.
func TestCheck(t *testing.T) {
	f := func(key string, got []byte, good bool) {
		t.Helper()
		if _, err := check(key, got); (err == nil) != good {
			t.Errorf("check of %d bytes under %q = %v", len(got), key, err)
		}
	}
	for version := range 30 {
		v := value("key-1", version)
		f("key-1", v, true)
		f("key-2", v, false)
		f("key-1", v[:len(v)-1], false)
		f("key-1", append(v[:len(v):len(v)], 0), false)
		v[len(v)-9] ^= 1
		f("key-1", v, false)
	}
	f("key-1", nil, false)
	h := history{sent: 5, least: 3}
	for version, want := range []bool{false, false, false, true, true, true, false} {
		if h.allows(version) != want {
			t.Errorf("version %d: %v", version, !want)
		}
	}
}
