package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
)

// eachRecorded reads a recording: sink gets its events, and answered the line of each request.
func eachRecorded(t *testing.T, file string, sink kvevents.Sink, answered func(v *vector)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var d kvevents.Decoder
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if v.Payload != "" {
			payload, err := hex.DecodeString(v.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Decode(payload, sink); err != nil {
				t.Fatalf("%s, batch %d: %v", file, *v.Seq, err)
			}
		}
		if v.Cached != nil {
			answered(&v)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

// A worker that evicts all the time: what the index makes of its events is what the engine found, request by request.
func TestRecordedCaches(t *testing.T) {
	files, err := filepath.Glob("recordings/caches-*.jsonl")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		index := holdings.New(holdings.Config{})
		sink := index.Writer(0)
		sink.SetLive(true)
		var q holdings.Query
		requests, cached := 0, 0
		eachRecorded(t, file, sink, func(v *vector) {
			requests++
			cached += *v.Cached
			q.Reset("", "", v.IDs)
			var held [1]holdings.Held
			if index.Match(&q, []uint32{0}, held[:]); int(held[0].GPU) != *v.Cached {
				t.Errorf("%s, request %d of %d tokens: %d held, the engine found %d", file, requests, len(v.IDs), held[0].GPU, *v.Cached)
			}
		})
		s := index.Worker(0)
		if requests < 20 || cached == 0 || s.Removed < 50 {
			t.Errorf("%s: %d requests, %d tokens cached, %d blocks removed", file, requests, cached, s.Removed)
		}
		if s.Orphans+int(s.Unknown+s.Unplaced+s.Mismatched+s.Dropped) > 0 {
			t.Errorf("%s: %+v", file, s)
		}
	}
}
