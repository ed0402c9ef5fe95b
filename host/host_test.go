package host

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

var ctx = context.Background()

// guest is testdata/guest, built once.
var guest = sync.OnceValues(func() ([]byte, error) { return buildGuest("./testdata/guest") })

// observer is a guest that uses all of the SDK.
var observer = sync.OnceValues(func() ([]byte, error) { return buildGuest("./testdata/guests/observer") })

func buildGuest(pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := cmd.CombinedOutput(); err != nil {
		os.Stderr.Write(b)
		return nil, err
	}
	return os.ReadFile(out)
}

func newHost(t testing.TB, c Config) *Host {
	t.Helper()
	if c.Log == nil && testing.Verbose() {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	h, err := New(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

func load(t testing.TB, h *Host, wasm []byte, o Options) *Strategy {
	t.Helper()
	s, err := h.Load(ctx, t.Name(), wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(ctx) })
	return s
}

// frame makes a request over n workers of which fewest is the one with the fewest in flight.
func frame(n, fewest int) *Frame {
	f := &Frame{}
	f.Reset()
	for i := range n {
		f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), InFlight: 5, Weight: 1, Slow: 1})
		f.WorkerIDs = append(f.WorkerIDs, "w")
	}
	f.Rows[fewest].InFlight = 1
	return f
}

func goGuest(t testing.TB) []byte {
	t.Helper()
	b, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoGuest(t *testing.T) {
	h := newHost(t, Config{CacheDir: t.TempDir()})
	s := load(t, h, goGuest(t), Options{})
	for _, n := range []int{1, 2, 16, 64, 65, 300} {
		f := frame(n, n/2)
		r := s.Pick(f)
		if r.Fallback != "" || r.Row != n/2 || r.Reason != 1 || len(r.Order) != n || r.Fuel <= 0 {
			t.Errorf("%d workers: %+v; want row %d by the module (%s)", n, r, n/2, s.Stats().LastError)
		}
	}
	t.Logf("%+v", s.Stats())
}
