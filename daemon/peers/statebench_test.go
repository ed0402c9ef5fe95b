package peers

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// BenchmarkStateFile measures a write and a start, with 8 workers of 32,768 blocks each, full of chats of 200 blocks.
func BenchmarkStateFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state")
	l := newLife(b, path, 8, 7, served)
	now, h := time.Now(), uint64(1)
	chain := make([]uint64, 200)
	for slot := range uint32(8) {
		l.pool.Index.SetCapacity(slot, 32768)
		for i := range 164 {
			for k := range chain {
				h = h*6364136223846793005 + 1442695040888963407
				chain[k] = h
			}
			l.pool.Recall(worker.KeyOf("w"+string(rune('0'+slot))), 1, chain, now.Add(time.Duration(i-200)*time.Second), now)
		}
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			l.file.Save()
		}
		if info, err := os.Stat(path); err == nil {
			b.ReportMetric(float64(info.Size())/float64(l.pool.Index.Stats().Blocks), "B/block")
			b.ReportMetric(float64(l.pool.Index.Stats().Blocks), "blocks")
		}
	})
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			f := OpenState(path, l.file.log)
			f.restore(f.found, &stated{name: "p", models: func() []string { return served }, pool: l.pool})
		}
	})
}
