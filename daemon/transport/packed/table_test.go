package packed

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func TestTables(t *testing.T) {
	const head, row = 24, 40
	f := func(rows, rest int) {
		t.Helper()
		var table []byte
		for i := range head + rows*row {
			table = append(table, byte(i%7*(i%3)))
		}
		text := AppendTable([]byte("before"), append(table, make([]byte, rest)...), head, row)[len("before"):]
		got, ok := ReadTable(text, head, row)
		if !ok || !bytes.Equal(got, table) {
			t.Errorf("%d rows: %v, % x; want % x", rows, ok, got, table)
		}
		for n := range text {
			if short, ok := ReadTable(text[:n], head, row); ok && !bytes.HasPrefix(table, short) {
				t.Errorf("%d rows: % x of % x", rows, short, table)
			}
		}
		if _, ok := ReadTable(text[:len(text)-1], head, row); ok {
			t.Errorf("%d rows are read from too few bytes", rows)
		}
	}
	for rows := range 9 {
		f(rows, 0)
		f(rows, row-1)
	}
	alike := make([]byte, head+10*row)
	for i := range alike {
		alike[i] = 1
	}
	if n := len(AppendTable(nil, alike, head, row)); n != 1+head+1+row+9 {
		t.Errorf("ten rows that are alike take %d bytes", n)
	}
	if got := AppendTable(nil, make([]byte, head-1), head, row); got != nil {
		t.Errorf("a cut head is %x", got)
	}
	if _, ok := ReadTable(nil, head, row); ok {
		t.Error("nothing is read as a table")
	}
}

// TestLogsOfAllVersions: these bytes stand in access logs.
func TestLogsOfAllVersions(t *testing.T) {
	table := make([]byte, 16+3*24)
	table[8], table[16], table[31], table[40], table[55], table[64] = 1, 2, 3, 2, 4, 5
	const want = "020100000000000000" + // the head's second word
		"0302000000000000000000000000000003" + // two words
		"020000000000000007" + // the second is another
		"030700000000000000" + "0000000000000004"
	text := AppendTable(nil, table, 16, 24)
	if got := hex.EncodeToString(text); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, ok := ReadTable(text, 16, 24); !ok || !bytes.Equal(got, table) {
		t.Errorf("%v, % x; want % x", ok, got, table)
	}
}

func TestAppendingAllocatesNothing(t *testing.T) {
	table := bytes.Repeat([]byte{1, 0, 2}, 8*20)
	var out []byte
	f := func() { out = AppendTable(out[:0], table, 24, 40) }
	f()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Any bytes are read without a panic, and what is read is written as bytes that are read the same.
func FuzzReadTable(f *testing.F) {
	f.Add(AppendTable(nil, bytes.Repeat([]byte{1}, 24+3*40), 24, 40))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, ok := ReadTable(text, 24, 40)
		if !ok {
			return
		}
		if again, ok := ReadTable(AppendTable(nil, table, 24, 40), 24, 40); !ok || !bytes.Equal(again, table) {
			t.Errorf("% x, then % x, %v", table, again, ok)
		}
	})
}
