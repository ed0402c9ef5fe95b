package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The greeting has 64 bytes: FF, eight of padding, 7F, the version 03 01, the mechanism in 20 bytes filled with
// zeros, a byte for as-server, and 31 zeros.
const (
	greetingBytes = 64
	versionAt     = 10
	mechanismAt   = 12
	asServerAt    = 32
)

func greeting() []byte {
	g := make([]byte, greetingBytes)
	g[0] = 0xff
	g[9] = 0x7f
	g[versionAt] = 3
	g[versionAt+1] = 1
	copy(g[mechanismAt:], "NULL")
	return g
}

// Peer is who is at the other end.
type Peer struct {
	Address  Address
	Kind     Kind
	Identity string // as it announced itself; not proven in any way
	minor    byte   // of its ZMTP 3
}

// shakeHands exchanges greetings and READY. Both sides send without waiting for each other.
func shakeHands(rw io.ReadWriter, r *reader, c Config) (Peer, error) {
	var p Peer
	defer r.relax()
	if _, err := rw.Write(append(greeting(), ready(c)...)); err != nil {
		return p, err
	}
	var g [greetingBytes]byte
	// A peer of another protocol may send less than a whole greeting and wait: the start must do to refuse it.
	if _, err := io.ReadFull(r.from, g[:versionAt+1]); err != nil {
		return p, unexpected(err)
	}
	switch {
	case g[0] != 0xff || g[9]&1 == 0:
		return p, fmt.Errorf("zmtp: the greeting begins with %q: %w; is this a ZeroMQ port?", g[:versionAt], errFrame)
	case g[versionAt] < 3:
		return p, fmt.Errorf("zmtp: the peer speaks ZMTP of libzmq before 4.0: %w; update it", errFrame)
	}
	if _, err := io.ReadFull(r.from, g[versionAt+1:]); err != nil {
		return p, unexpected(err)
	}
	if m := string(bytes.TrimRight(g[mechanismAt:asServerAt], "\x00")); m != "NULL" {
		return p, fmt.Errorf("zmtp: the peer wants mechanism %q; only NULL is spoken", m)
	}
	p.minor = g[versionAt+1]
	return p, p.await(r, c.Kind)
}

// await reads the peer's READY, the first frame after the greeting.
func (p *Peer) await(r *reader, own Kind) error {
	flags, n, err := r.header(false)
	if err != nil {
		return unexpected(err)
	}
	if flags&flagCommand == 0 {
		return fmt.Errorf("zmtp: a message before READY: %w", errFrame)
	}
	came := ""
	var content []byte
	r.command = func(name string, body []byte) error {
		came = name
		content = body
		return nil
	}
	if err := r.runCommand(n); err != nil {
		return err
	}
	switch {
	case came == "ERROR":
		return fmt.Errorf("zmtp: the peer refuses: %q", content)
	case came != "READY":
		return fmt.Errorf("zmtp: command %q before READY: %w", came, errFrame)
	}
	if err := p.properties(content); err != nil {
		return err
	}
	if !slices.Contains(partners[own], p.Kind) {
		return fmt.Errorf("zmtp: the peer is a %q; a %s talks to %v only: is this the right port?", p.Kind, own,
			partners[own])
	}
	return nil
}

// ready is our READY: Socket-Type, and Identity where the kind has one.
func ready(c Config) []byte {
	b := appendProperty(nil, "Socket-Type", string(c.Kind))
	switch c.Kind {
	case DEALER, ROUTER, REQ:
		b = appendProperty(b, "Identity", c.Identity)
	}
	return appendCommand(nil, "READY", b)
}

// appendProperty appends a name with its length in one byte and a value with its length in four.
func appendProperty(dst []byte, name, value string) []byte {
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// properties reads those of a READY. Names are compared without case, and unknown ones are left alone.
func (p *Peer) properties(b []byte) error {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			return fmt.Errorf("zmtp: READY is cut short: %w", errFrame)
		}
		name := string(b[1 : 1+n])
		size := binary.BigEndian.Uint32(b[1+n:])
		b = b[1+n+4:]
		if uint64(size) > uint64(len(b)) {
			return fmt.Errorf("zmtp: READY is cut short: %w", errFrame)
		}
		switch value := string(b[:size]); {
		case strings.EqualFold(name, "Socket-Type"):
			p.Kind = Kind(value)
		case strings.EqualFold(name, "Identity"):
			if len(value) > math.MaxUint8 {
				return fmt.Errorf("zmtp: an identity of %d bytes: %w of 255", len(value), ErrLimit)
			}
			p.Identity = value
		}
		b = b[size:]
	}
	return nil
}
