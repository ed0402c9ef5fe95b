package front

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// TestAccessLogHammer: while reloads open the log anew and give it another name, each request leaves one whole line.
func TestAccessLogHammer(t *testing.T) {
	const writers, each = 4, 500
	dir, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	names := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	var log accessLog
	if err := log.open(names[0], quiet); err != nil {
		t.Fatal(err)
	}
	var requests, reloads sync.WaitGroup
	for w := range writers {
		requests.Go(func() {
			for i := range each {
				log.log(&message.Inbound{ID: fmt.Sprint(w, "-", i)}, ended{at: time.Now(), took: time.Second})
			}
		})
	}
	over := make(chan struct{})
	reloads.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				if i >= 6 { // each file was open
					return
				}
			default:
			}
			if err := log.open(names[i/3%2], quiet); err != nil {
				t.Error(err)
			}
		}
	})
	requests.Wait()
	close(over)
	reloads.Wait()
	log.close(quiet)
	seen := map[string]int{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var line struct{ ID string }
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			seen[line.ID]++
		}
		f.Close()
	}
	if len(seen) != writers*each || log.lost.Load() != 0 {
		t.Errorf("%d of %d requests have a line, %d are lost", len(seen), writers*each, log.lost.Load())
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s has %d lines", id, n)
		}
	}
}
