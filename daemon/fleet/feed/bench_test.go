package feed

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/zmqpub"
)

// storedBlocks is a batch of one BlockStored in the array form: so many blocks of 16 tokens that begin a prompt.
func storedBlocks(n, blocks int) []byte {
	b := []byte{0x93, 0x01, 0x91, 0x97, 0xab}
	b = append(b, "BlockStored"...)
	b = append(b, 0xdc, 0, byte(blocks))
	for i := range blocks {
		b = binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n*blocks+i)*0x9e3779b97f4a7c15)
	}
	b = append(b, 0xc0, 0xdc, byte(blocks*16>>8), byte(blocks*16))
	for i := range blocks * 16 {
		b = append(b, 0xcd, byte((n+i)>>8), byte(n+i))
	}
	return append(b, 16, 0xc0, 0xa3, 'G', 'P', 'U', 0)
}

// BenchmarkPubToIndex has a publisher send messages of one block as fast as it can, and waits until the index has all:
// msg/s, of which none is lost.
func BenchmarkPubToIndex(b *testing.B) {
	const distinct = 4096 // blocks, as a worker's cache has an end
	payloads := make([][]byte, distinct)
	for i := range payloads {
		payloads[i] = storedBlocks(i, 1)
	}
	p := zmqpub.New(zmtp.Config{}, b.N+1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := p.Listen(ctx, "tcp://127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	x := holdings.New(holdings.Config{})
	s := newSource(&Config{Index: x, Log: slog.New(slog.DiscardHandler)}, "w", 0, place{events: l.Addr().String()})
	s.run(ctx, s.sub.Run)
	defer s.close()
	for p.Subscribers("") == 0 {
		time.Sleep(time.Millisecond)
	}
	b.ResetTimer()
	for i := range b.N {
		p.Publish(nil, binary.BigEndian.AppendUint64(nil, uint64(i)), payloads[i%distinct])
	}
	for st := s.sub.Stats(); st.Batches < uint64(b.N); st = s.sub.Stats() {
		if st.Gaps > 0 || p.Dropped() > 0 {
			b.Fatalf("messages were lost: %+v", st)
		}
		time.Sleep(100 * time.Microsecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	if s.sub.Stats().State != kvevents.Live || x.Worker(0).Stored < uint64(min(b.N, distinct)) {
		b.Fatalf("%+v", x.Worker(0))
	}
}
