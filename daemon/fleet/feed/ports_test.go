package feed

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

func openAt(t *testing.T, addr string, log *slog.Logger) *Listener {
	t.Helper()
	d, err := Open(t.Context(), addr, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A rank's address is ours if it is where that rank would dial; one with a wildcard is the worker's.
func TestWhoseAddress(t *testing.T) {
	d := &Listener{ports: &ports{base: "tcp://0.0.0.0:5557"}}
	f := func(addr string, rank int, ours bool) {
		t.Helper()
		if got := d.ports.isAt(addr, rank); got != ours {
			t.Errorf("%s of rank %d: ours %v; want %v", addr, rank, got, ours)
		}
	}
	f("tcp://router:5557", 0, true)
	f("tcp://router:5558", 0, false)
	f("tcp://router:5558", 1, true)
	f("tcp://router:5557", 1, false)
	f("ipc:///run/kv", 0, false)
	d.ports.base = "ipc:///run/kv"
	f("ipc:///run/kv", 0, true)
	f("ipc:///run/kv_dp3", 3, true)
	f("ipc:///run/kv", 3, false)
	f("tcp://router:5557", 0, false)
	for at, want := range map[string]bool{"tcp://*:5557": true, "tcp://[::]:5557": true, "tcp://router:5557": false,
		"ipc:///run/kv": false, "": false} {
		if listens(at) != want {
			t.Errorf("%q listens: %v; want %v", at, !want, want)
		}
	}
}

// A worker that listens at the router's own port number is dialled all the same.
func TestAWorkerThatListensIsDialled(t *testing.T) {
	f := &Feed{config: Config{Listener: &Listener{ports: &ports{base: "tcp://0.0.0.0:5557"}}}, origins: map[string]Origin{
		"listens": {URL: "http://gpu:8000", Events: "tcp://*:5557"},
		"dials":   {URL: "http://gpu:8000", Events: "tcp://router:5557"},
	}}
	for id, want := range map[string]bool{"listens": true, "dials": false} {
		if _, dial := f.placeOf(&worker.Stats{Endpoint: id}, time.Now()); dial != want {
			t.Errorf("the worker that %s is dialled: %v", id, dial)
		}
	}
}

// Listeners are opened for the ranks that there are. One whose port is taken is named once, and opened when it is free.
func TestAListenerForEachRank(t *testing.T) {
	path := t.TempDir() + "/kv"
	log := &logtest.Log{}
	d := openAt(t, "ipc://"+path, slog.New(slog.NewTextHandler(log, nil)))
	taken, err := net.Listen("unix", path+"_dp2")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	d.ports.reach(3, now)
	d.ports.reach(3, now.Add(time.Second))
	open := func(rank int) bool {
		c, err := net.Dial("unix", fmt.Sprintf("%s_dp%d", path, rank))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if !open(1) || open(4) {
		t.Error("rank 1 has no listener, or rank 4 has one")
	}
	if n := strings.Count(log.String(), "cannot listen"); n != 1 || !strings.Contains(log.String(), "free the 3 ports") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	taken.Close()
	d.ports.reach(3, now.Add(2*tryAgain))
	if !open(2) || !open(3) {
		t.Error("what was freed is not listened at")
	}
	d.ports.reach(1<<20, now.Add(4*tryAgain))
	if n := len(d.ports.listeners); n > worker.MaxRanks {
		t.Errorf("%d listeners", n)
	}
	d.Close()
	d.ports.reach(1<<20, now.Add(8*tryAgain))
	if open(1) {
		t.Error("somebody listens after the end")
	}
}
