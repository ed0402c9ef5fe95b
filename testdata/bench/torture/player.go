package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// tally is what the players of a run have done.
type tally struct {
	puts, gets, hits, refused, leases, broken atomic.Int64
}

// game is what the players share.
type game struct {
	tally
	ends     time.Time
	failed   atomic.Bool // somebody saw what must not be: all stop
	promises bool        // ask EXISTS without reading: the promise outlasts a short run
}

// left is how long the game goes on.
func (g *game) left() time.Duration {
	if g.failed.Load() {
		return 0
	}
	return max(time.Until(g.ends), 0)
}

// player plays at one door with keys of its own.
type player struct {
	game *game
	site *site
	name string
	rnd  *rand.Rand
	keys map[string]*history
	life int64
	// blind: the player is a process of its own, and does not hear when the daemon is killed.
	blind bool

	conn net.Conn
	in   *bufio.Reader
}

const keysOf = 60 // of each player

func newPlayer(g *game, s *site, name string) *player {
	r := rand.New(rand.NewPCG(seed(name, 1), uint64(time.Now().UnixNano())))
	return &player{game: g, site: s, name: name, rnd: r, keys: map[string]*history{}}
}

// wrong is what must never happen. Other errors are of connections that broke, which is part of the game.
type wrong struct{ error }

// play makes moves until the game ends.
func (p *player) play(addr string, move func(*player) error) error {
	defer p.hangUp()
	for p.game.left() > 0 {
		err := p.dial(addr)
		if err == nil {
			err = move(p)
		}
		if bad, ok := errors.AsType[wrong](err); ok {
			return fmt.Errorf("%s at %s: %w", p.name, p.site.name, bad)
		}
		if err != nil {
			p.hangUp()
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

func (p *player) hangUp() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// dial connects, if need be. In a new life of the daemon the disk may have older values.
func (p *player) dial(addr string) error {
	if p.conn != nil {
		return nil
	}
	life := p.site.life.Load()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	if p.site.life.Load() != life {
		c.Close()
		return errors.New("killed meanwhile")
	}
	p.conn, p.in = c, bufio.NewReaderSize(c, 16<<10)
	if life != p.life || p.blind {
		p.life = life
		for _, h := range p.keys {
			h.least = 1
		}
	}
	return nil
}

// pick chooses a key.
func (p *player) pick() (string, *history) {
	key := fmt.Sprintf("%s-%d", p.name, p.rnd.IntN(keysOf))
	h := p.keys[key]
	if h == nil {
		h = &history{least: 1}
		p.keys[key] = h
	}
	return key, h
}

// judge looks at what was read.
func (p *player) judge(key string, h *history, got []byte) error {
	version, err := check(key, got)
	if err != nil {
		return wrong{err}
	}
	if !h.allows(version) {
		return wrong{fmt.Errorf("%s has version %d; %d to %d may be read", key, version, h.least, h.sent)}
	}
	p.game.hits.Add(1)
	return nil
}

// move is one command at the Redis listener.
func (p *player) move() error {
	key, h := p.pick()
	_ = p.conn.SetDeadline(time.Now().Add(30 * time.Second))
	switch n := p.rnd.IntN(100); {
	case n < 35:
		return p.put(key, h)
	case n < 80:
		return p.get(key, h)
	case n < 85:
		return p.delete(key, h)
	case n < 96 || p.game.promises:
		there, err := p.number("EXISTS", key)
		if err != nil || there == 0 || n >= 97 {
			return err
		}
		return p.mustGet(key, h)
	case n == 98:
		return p.breakOff(key, h)
	}
	return nil
}

func command(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func (p *player) put(key string, h *history) error {
	h.sent++
	version := h.sent
	v := value(key, version)
	head := fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, len(v))
	buffers := net.Buffers{head, v, []byte("\r\n")}
	if _, err := buffers.WriteTo(p.conn); err != nil {
		return err
	}
	line, err := p.in.ReadString('\n')
	switch {
	case err != nil:
		return err
	case line == "+OK\r\n":
		h.least = version
		p.game.puts.Add(1)
	case strings.HasPrefix(line, "-OOM"):
		p.game.refused.Add(1)
	default:
		return wrong{fmt.Errorf("SET answers %q", line)}
	}
	return nil
}

func (p *player) get(key string, h *history) error {
	p.game.gets.Add(1)
	if _, err := io.WriteString(p.conn, command("GET", key)); err != nil {
		return err
	}
	got, there, err := readBulk(p.in)
	if err != nil || !there {
		return err
	}
	return p.judge(key, h, got)
}

// mustGet reads what EXISTS has just promised.
func (p *player) mustGet(key string, h *history) error {
	hits := p.game.hits.Load()
	p.game.gets.Add(1)
	if _, err := io.WriteString(p.conn, command("GET", key)); err != nil {
		return err
	}
	got, there, err := readBulk(p.in)
	if err != nil {
		return err
	}
	if !there {
		return wrong{fmt.Errorf("%s was promised and is a miss (%d hits before)", key, hits)}
	}
	return p.judge(key, h, got)
}

func (p *player) delete(key string, h *history) error {
	if _, err := p.number("DEL", key); err != nil {
		return err
	}
	h.least = h.sent + 1
	return nil
}

func (p *player) number(words ...string) (int, error) {
	if _, err := io.WriteString(p.conn, command(words...)); err != nil {
		return 0, err
	}
	line, err := p.in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, ":"), "\r\n"))
	if err != nil || line[0] != ':' {
		return 0, wrong{fmt.Errorf("%s answers %q", words[0], line)}
	}
	return n, nil
}

// breakOff hangs up in the middle of a value that it puts, or gets.
func (p *player) breakOff(key string, h *history) error {
	p.game.broken.Add(1)
	if p.rnd.IntN(2) == 0 {
		_, _ = io.WriteString(p.conn, command("GET", key))
		_, _ = p.in.Peek(1)
	} else {
		h.sent++
		v := value(key, h.sent)
		fmt.Fprintf(p.conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s", len(key), key, len(v), v[:p.rnd.IntN(len(v))])
	}
	return errors.New("broken off")
}

// readBulk reads the answer to GET.
func readBulk(in *bufio.Reader) (b []byte, there bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, false, err
	}
	if line == "$-1\r\n" {
		return nil, false, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, "$"), "\r\n"))
	if err != nil || line[0] != '$' || n < 0 || n > 128<<20 {
		return nil, false, wrong{fmt.Errorf("GET answers %.80q", line)}
	}
	b = make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, false, err
	}
	if string(b[n:]) != "\r\n" {
		return nil, false, wrong{fmt.Errorf("a value of %d bytes does not end there: %q", n, b[n:])}
	}
	return b[:n], true, nil
}
