package plugins

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/host/meter"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestBuiltin(t *testing.T) {
	for _, name := range Names() {
		if Native(name) == nil {
			t.Errorf("Native(%q) = nil", name)
		}
		wasm, err := Builtin(name)
		if err != nil && !strings.Contains(err.Error(), "make modules") {
			t.Errorf("Builtin(%q): %v; want the remedy", name, err)
		}
		if err == nil && string(wasm[:4]) != "\x00asm" {
			t.Errorf("Builtin(%q) is no wasm", name)
		}
	}
	_, err := Builtin("nosuch")
	if err == nil || !strings.Contains(err.Error(), "prefixaware, kvaware, session, roundrobin") {
		t.Errorf("Builtin(nosuch): %v", err)
	}
}

// TestReadALargeFile: a file beyond what the sandbox takes is refused by its size, not read.
func TestReadALargeFile(t *testing.T) {
	if MaxModule != meter.MaxModule {
		t.Errorf("%d bytes are read; the sandbox takes %d", MaxModule, meter.MaxModule)
	}
	path := filepath.Join(t.TempDir(), "large.wasm")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, MaxModule+1); err != nil {
		t.Fatal(err)
	}
	_, err := Read("large", path)
	if err == nil || !strings.Contains(err.Error(), "the limit is 67108864") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want the file and the limit", err)
	}
	if err := os.Truncate(path, 8); err != nil {
		t.Fatal(err)
	}
	if b, err := Read("small", path); err != nil || len(b) != 8 {
		t.Errorf("%d bytes, %v; want 8", len(b), err)
	}
}

// TestReadAFIFO: what is no regular file is refused, not opened.
func TestReadAFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.wasm")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := Read("pipe", path)
		refused <- err
	}()
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("%v; want the file and what it is not", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is opened, which waits for a writer")
	}
}

func TestReasonText(t *testing.T) {
	if got := ReasonText("roundrobin", uint16(sdk.ReasonTurn)); got != "its turn" {
		t.Errorf("a built-in's reason: %q", got)
	}
	if got := ReasonText("mine", 0); got != "none" {
		t.Errorf("got %q for no reason", got)
	}
	if got := ReasonText("mine", uint16(sdk.ReasonTurn)); got != "reason 9" {
		t.Errorf("another module's reason: %q", got)
	}
}

// A module stays small: fmt alone would add half a megabyte, time a quarter.
func TestModuleSize(t *testing.T) {
	const most = 2_000_000
	for _, name := range Names() {
		if n := len(build(t, module(name))); n > most {
			t.Errorf("%s has %d bytes; want at most %d: what did sdk import?", name, n, most)
		}
	}
}

// The contract needs no Go: the same round robin from C takes the same turns.
func TestGuestInC(t *testing.T) {
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	clang, err := exec.LookPath("clang")
	if err != nil {
		missing("SKIPPED: no clang on this machine, so the guest in C is not proven here; apt-get install clang lld")
	}
	out := filepath.Join(t.TempDir(), "roundrobin.wasm")
	text, err := exec.Command(clang, "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all", "-o", out,
		"../host/testdata/guests/c/roundrobin.c").CombinedOutput()
	if err != nil {
		missing("SKIPPED: clang cannot build for wasm32, so the guest in C is not proven here; apt-get install lld: %s", text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	turns(t, wasm)
}

func TestGuestInGoTakesTurns(t *testing.T) { turns(t, build(t, module("roundrobin"))) }

func turns(t *testing.T, wasm []byte) {
	t.Helper()
	g, f := instantiate(t, wasm, 8), sdktest.NewFrame(7)
	for seq := range uint64(100) {
		f.Header.Seq = seq
		g.write(&f.Header, f.Rows)
		if got, want := sdk.Decision(g.run(t)), sdk.To(int(seq%7)).Because(sdk.ReasonTurn); got != want {
			t.Fatalf("request %d: %#x; want %#x", seq, got, want)
		}
		if o := g.order(); len(o) != sdk.Alternatives || o[0] != uint32((seq+1)%7) {
			t.Fatalf("request %d: alternatives %v", seq, o)
		}
	}
	binary.LittleEndian.PutUint32(g.frame, 2<<16)
	if got, _, _ := abi.Unpack(g.run(t)); got != abi.Decline {
		t.Errorf("another major version is answered with row %d; want a decline", got)
	}
}
