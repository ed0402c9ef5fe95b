// Package dnstest is a name server on loopback for tests. It answers by a table that a test changes while it is asked:
// addresses, error codes by query type, answers that do not fit into a datagram, or none at all.
package dnstest

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// The types of queries (RFC 1035, RFC 3596).
const (
	TypeA    = 1
	TypeAAAA = 28
)

// Answer is a server's answer for every name.
type Answer struct {
	Addrs  []string
	Codes  map[uint16]byte // by query type: 2 = SERVFAIL, 3 = NXDOMAIN
	Silent bool            // it does not answer
	Long   bool            // it does not fit into a datagram
}

// Server is a name server. Make it with Start; it is safe for concurrent use.
type Server struct {
	packets net.PacketConn
	streams net.Listener

	mu     sync.Mutex // guards answer
	answer Answer
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		packets.Close()
		t.Skipf("the port of UDP is taken in TCP: %v", err)
	}
	s := &Server{packets: packets, streams: streams}
	t.Cleanup(func() { packets.Close(); streams.Close() })
	go s.servePackets()
	go s.serveStreams()
	return s
}

// Set replaces the answer.
func (s *Server) Set(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

// Resolver returns one that asks this server.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.packets.LocalAddr().String())
		}}
}

func (s *Server) servePackets() {
	b := make([]byte, 4096)
	for {
		k, from, err := s.packets.ReadFrom(b)
		if err != nil {
			return
		}
		if out := s.reply(b[:k], false); out != nil {
			s.packets.WriteTo(out, from)
		}
	}
}

func (s *Server) serveStreams() {
	for {
		c, err := s.streams.Accept()
		if err != nil {
			return
		}
		b := make([]byte, 4096)
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if k, err := c.Read(b); err == nil && k > 2 {
			if out := s.reply(b[2:k], true); out != nil {
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
			}
		}
		c.Close()
	}
}

// reply returns the answer to a query (RFC 1035, section 4.1), nil for none.
func (s *Server) reply(query []byte, stream bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answer
	if a.Silent {
		return nil
	}
	end := bytes.IndexByte(query[12:], 0) + 13 // of the name
	kind := binary.BigEndian.Uint16(query[end:])
	out := append([]byte(nil), query[:end+4]...)
	out[2] = 0x84 // an authoritative answer
	out[3] = 0x80 | a.Codes[kind]
	copy(out[6:12], []byte{0, 0, 0, 0, 0, 0})
	if a.Long && !stream {
		out[2] |= 2 // truncated: ask again over TCP
		return out
	}
	count := 0
	for _, text := range a.Addrs {
		addr := netip.MustParseAddr(text)
		if addr.Is4() == (kind == TypeA) && a.Codes[kind] == 0 {
			raw := addr.AsSlice()
			out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 30, 0, byte(len(raw))) // a TTL of 30 s
			out = append(out, raw...)
			count++
		}
	}
	binary.BigEndian.PutUint16(out[6:], uint16(count))
	return out
}
