package attempt

import (
	"bytes"
	"strings"
	"testing"
)

// TestSplit is the table of what the client may have of a piece and what the splitter holds back.
func TestSplit(t *testing.T) {
	f := func(s splitter, piece string, room, want int, part string, inside bool) {
		t.Helper()
		n := s.split([]byte(piece), room)
		if n != want || string(s.part) != part || s.inside != inside {
			t.Errorf("%q: %d, held back %q, inside %v; want %d, %q, %v", piece, n, s.part, s.inside, want, part, inside)
		}
	}
	begun := splitter{inside: true}
	f(splitter{}, "", 99, 0, "", false)
	f(begun, "", 99, 0, "", true)
	f(splitter{}, "a\n\n", 99, 3, "", false)
	f(splitter{}, "a\n\nb", 99, 3, "b", false)
	f(splitter{}, "a", 99, 0, "a", false)
	f(splitter{}, "a", 1, 1, "", true) // an event that is larger than the room goes on in pieces
	f(begun, "a", 99, 1, "", true)
	f(begun, "a\n\nb", 99, 3, "b", false)
	f(begun, "a\n\n", 99, 3, "", false)
}

// TestSplitterLosesNothing: whatever the pieces and the readers' rooms are, all of a stream comes through in order.
// inside is true if what came through ends within an event.
func TestSplitterLosesNothing(t *testing.T) {
	text := strings.Repeat("data: 1\n\ndata: 22\r\n\r\n: comment\n\ndata: "+strings.Repeat("x", 40)+"\n\n", 5) + "data: cut"
	for piece := 1; piece < 30; piece++ {
		for room := 1; room < 40; room++ {
			var s splitter
			var got []byte
			source := strings.NewReader(text)
			for turn := 0; source.Len() > 0 || len(s.part) > 0; turn++ {
				p := make([]byte, max(1, room-turn%7)) // readers whose room changes
				n := s.prepend(p)
				if n < len(p) {
					m, _ := source.Read(p[n:min(len(p), n+piece)])
					if m == 0 { // its end: what is held back goes on
						got = append(got, p[:n]...)
						break
					}
					n = s.split(p[:n+m], len(p))
				}
				got = append(got, p[:n]...)
				ended := len(got) == 0 || bytes.HasSuffix(got, []byte("\n\n")) || bytes.HasSuffix(got, []byte("\r\n\r\n"))
				if len(got) < len(text) && !ended && !s.inside { // the other way is harmless: an empty line more
					t.Fatalf("pieces of %d, room %d: %q ends within an event", piece, room, got)
				}
			}
			if string(got) != text {
				t.Fatalf("pieces of %d, room %d: %q; want %q", piece, room, got, text)
			}
		}
	}
}

func TestPage(t *testing.T) {
	var p page
	if p.full() {
		t.Error("an empty page is full")
	}
	want := ""
	for range 3 {
		room := p.room()
		n := copy(room, "event\n")
		if string(p.grow(n)) != "event\n" {
			t.Error("grow returns something else than was read")
		}
		want += "event\n"
	}
	if string(p.held) != want {
		t.Errorf("held: %q", p.held)
	}
	p.grow(len(p.room()))
	if !p.full() || len(p.room()) != 0 {
		t.Error("a page without room is not full")
	}
	buffer := make([]byte, 10)
	if n := p.read(buffer); n != 10 || string(buffer) != want[:10] {
		t.Errorf("read %q", buffer[:n])
	}
	if n := p.read(make([]byte, 8192)); n != 4096-10 || p.buffer != nil || p.held != nil {
		t.Errorf("read %d; the buffer has been given back: %v", n, p.buffer == nil)
	}
	p.release() // twice is once
}
