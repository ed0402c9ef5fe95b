package sse

import (
	"bytes"
	"testing"
)

func TestLastEnd(t *testing.T) {
	f := func(text string, want int) {
		t.Helper()
		if got := LastEnd([]byte(text)); got != want {
			t.Errorf("%q: %d; want %d", text, got, want)
		}
	}
	f("", 0)
	f("data: 1\n", 0)
	f("data: 1\n\n", 9)
	f("data: 1\n\ndata: 2", 9)
	f("data: 1\n\ndata: 2\n\n", 18)
	f("data: 1\r\n\r\n", 11)
	f("data: 1\r\n\r\ndata: 2\r\n", 11)
	f("data: 1\n\ndata: 2\r\n\r\nx", 20)
	f("data: 1\r\n\r\ndata: 2\n\nx", 20)
	f("\n\n", 2)
	f("data: 1\n\r\ndata: 2", 10) // each line may end in its own way
	f("data: 1\r\n\ndata: 2", 10)
}

// lastMark is LastEnd by its definition: the place behind the last of either mark.
func lastMark(p []byte) (end int) {
	for _, mark := range []string{"\n\n", "\n\r\n"} {
		if i := bytes.LastIndex(p, []byte(mark)); i >= 0 {
			end = max(end, i+len(mark))
		}
	}
	return end
}

// firstMark is FirstEnd by its definition.
func firstMark(p []byte, from int) (end int) {
	end = -1
	for _, mark := range []string{"\n\n", "\n\r\n"} {
		if i := bytes.Index(p[from:], []byte(mark)); i >= 0 && (end < 0 || from+i+len(mark) < end) {
			end = from + i + len(mark)
		}
	}
	return end
}

// checkEnds compares both searches with their definitions.
func checkEnds(t *testing.T, p []byte) {
	t.Helper()
	if got, want := LastEnd(p), lastMark(p); got != want {
		t.Fatalf("the last of %q: %d; want %d", p, got, want)
	}
	for from := range len(p) + 1 {
		if got, want := FirstEnd(p, from), firstMark(p, from); got != want {
			t.Fatalf("the first of %q from %d: %d; want %d", p, from, got, want)
		}
	}
}

// TestEndsAreTheMarks goes through all texts of up to eight bytes that are line feeds, carriage returns and
// others.
func TestEndsAreTheMarks(t *testing.T) {
	for length := range 9 {
		count := 1
		for range length {
			count *= 3
		}
		text := make([]byte, length)
		for number := range count {
			for i := range text {
				text[i] = "\n\rx"[number%3]
				number /= 3
			}
			checkEnds(t, text)
		}
	}
}

func FuzzEnds(f *testing.F) {
	for _, s := range []string{"", "\n", "data: 1\n\ndata: 2\r\n\r\nx\n", "\r\n\r\n\r\n", "\n\r\n\r\n", "\r\r\n\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		checkEnds(t, p)
	})
}
