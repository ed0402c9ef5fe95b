//go:build linux && !race

package socket

import (
	"testing"
	"time"
)

// counted is a room that counts.
type counted struct {
	memory       []byte
	taken        bool
	takes, drops int
}

func (c *counted) Take() []byte {
	if !c.taken {
		c.taken = true
		c.takes++
	}
	return c.memory
}

func (c *counted) Drop() { c.taken = false; c.drops++ }

// TestReadRoom: a read holds no memory while it waits, and takes it again for what comes. One that finds something drops
// nothing.
func TestReadRoom(t *testing.T) {
	ours, theirs := pair(t)
	room := &counted{memory: make([]byte, 100)}
	waits := time.AfterFunc(20*time.Millisecond, func() { theirs.Write([]byte("late")) })
	defer waits.Stop()
	n, err := ours.ReadRoom(room)
	if err != nil || string(room.memory[:n]) != "late" || !room.taken || room.takes < 2 || room.drops != room.takes-1 {
		t.Errorf("%q, %v, %d times taken, %d times dropped", room.memory[:n], err, room.takes, room.drops)
	}

	theirs.Write([]byte("more, at once"))
	time.Sleep(20 * time.Millisecond)
	room = &counted{memory: make([]byte, 4)}
	for _, want := range []string{"more", ", at", " onc", "e"} {
		n, err := ours.ReadRoom(room)
		if err != nil || string(room.memory[:n]) != want || room.takes != 1 || room.drops != 0 {
			t.Errorf("%q, %v, %d times taken, %d times dropped; want %q", room.memory[:n], err, room.takes, room.drops, want)
		}
	}

	ours.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := ours.ReadRoom(room); n != 0 || !isTimeout(err) || room.taken {
		t.Errorf("a read that ends by its deadline: %d, %v, holds memory: %v", n, err, room.taken)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(interface{ Timeout() bool })
	return ok && e.Timeout()
}
