package host

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// everyday is a guest with fmt, encoding/json, regexp and time.
var everyday = sync.OnceValues(func() ([]byte, error) { return buildGuest("./testdata/guests/everyday") })

// A Go strategy with the packages that Go programs use every day loads under the default limits, and decides.
func TestAGoStrategyWithEverydayPackages(t *testing.T) {
	wasm, err := everyday()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s := load(t, newHost(t, Config{}), wasm, Options{Values: map[string]string{
		"rules": `[{"model": "qwen-[0-9]+", "tier": "batch"}, {"model": "night", "from": 22, "until": 24, "tier": "none"}]`}})
	t.Logf("%d KB, loaded in %v, %d KiB an instance", len(wasm)>>10, time.Since(began), s.Surface().MemoryBytes>>10)
	fr := frame(3, 1)
	fr.Labels, fr.Header.Labels, fr.Header.LabelsEpoch = []string{"tier=gold", "tier=batch"}, 2, 1
	fr.Rows[2].Labels = 0b10
	pick := func(model string, hour, row int) Result {
		t.Helper()
		fr.Model, fr.Header.Now = model, time.Date(2026, 11, 27, hour, 30, 0, 0, time.UTC).UnixNano()
		r := s.Pick(fr)
		if r.Fallback != "" || r.Row != row {
			t.Errorf("%s at %d: %+v (%s); want row %d", model, hour, r, s.Stats().LastError, row)
		}
		return r
	}
	pick("qwen-72", 12, 2)
	pick("llama", 12, 1)
	pick("night", 12, 1)
	fr.Rows[2].Labels = 0
	want := `no worker of the tier "none" is up at 23:00`
	fr.Model, fr.Header.Now = "night", time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC).UnixNano()
	if r := s.Pick(fr); r.Reject == nil || r.Reject.Text != want || r.Reject.Status != 503 {
		t.Errorf("at night: %+v; want %q", r.Reject, want)
	}
	t.Logf("fuel of a pick: %d", pick("llama", 12, 1).Fuel)
	if used, most := s.Surface().MemoryBytes, uint64(16<<20); used > most {
		t.Errorf("%d bytes of memory; the default limit is %d", used, most)
	}
}

var large = sync.OnceValues(func() ([]byte, error) { return buildGuest("./testdata/guests/large") })

// A module is refused for what it takes to compile, and not for what that is estimated at: one with net/http has an
// estimate of 23 s, and takes 3.4. It finds neither files nor sockets.
func TestALargeGoStrategy(t *testing.T) {
	wasm, err := large()
	if err != nil {
		t.Fatal(err)
	}
	began, h := time.Now(), newHost(t, Config{})
	h.codes.compiler.limit *= 3 // a virtual machine that waits for its host counts that as time of the processor
	s := load(t, h, wasm, Options{})
	t.Logf("%d KB, loaded in %v, %d KiB an instance", len(wasm)>>10, time.Since(began), s.Surface().MemoryBytes>>10)
	r := s.Pick(frame(3, 1))
	if r.Reject == nil || !strings.Contains(r.Reject.Text, "/etc/hostname") || !strings.Contains(r.Reject.Text, "127.0.0.1:1") {
		t.Errorf("%+v (%s); want it to have found no file and no page", r.Reject, s.Stats().LastError)
	}
	if n := s.Stats().Files; n == 0 {
		t.Error("it has asked for a file, and that is not counted")
	}
	if !s.Surface().Sockets {
		t.Error("its package net is not found")
	}
	few, err := everyday()
	if err != nil {
		t.Fatal(err)
	}
	if dials(few) {
		t.Error("package net is found where it is not")
	}
}
