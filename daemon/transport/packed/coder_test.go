package packed

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// all is a value of every kind.
type all struct {
	text, empty      string
	count            int
	back             int32
	took             time.Duration
	large            uint64
	share, none      float64
	yes, no, also    bool
	words, like, few []uint64
	list             []string
	infinities       float64
}

func (a *all) code(c *Coder) {
	c.Text(&a.text)
	c.Text(&a.empty)
	Int(c, &a.count)
	Int(c, &a.back)
	Int(c, &a.took)
	Int(c, &a.large)
	c.Float(&a.share)
	c.Float(&a.none)
	c.Bools(&a.yes, &a.no, &a.also)
	n := c.Len(len(a.words))
	if c.Reading() {
		a.words, a.few, a.like = make([]uint64, n), make([]uint64, 3), make([]uint64, n)
	}
	c.Words(a.like, nil)
	c.Words(a.words, a.like)
	c.Words(a.few, nil)
	n = c.Len(len(a.list))
	if c.Reading() {
		a.list = make([]string, n)
	}
	for i := range a.list {
		c.Text(&a.list[i])
	}
	c.Float(&a.infinities)
}

func some() *all {
	a := &all{text: "a text", count: -3, back: -1 << 31, took: time.Hour, large: math.MaxUint64, share: .1, yes: true, also: true,
		few: []uint64{0, 7, 0}, list: []string{"x", "", strings.Repeat("long ", 100)}, infinities: math.Inf(-1)}
	for i := range uint64(70) {
		a.like = append(a.like, i%3*1e18)
		a.words = append(a.words, a.like[i]^i%2)
	}
	return a
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := some()
	var w Coder
	w.Out = append(w.Out, "before"...)
	want.code(&w)
	r := Read(string(w.Out[len("before"):]))
	got := new(all)
	got.code(&r)
	if r.Bad || r.in != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("bad %v, %d bytes left:\n%+v\nwant\n%+v", r.Bad, len(r.in), got, want)
	}
}

// Zeros, and words that are those of the row before, take a bit.
func TestWordsAreSmall(t *testing.T) {
	row := []uint64{1, 2, 3, 0, 0, 6, 7, 8, 9, 10}
	next := append([]uint64(nil), row...)
	next[1]++
	var c Coder
	c.Words(row, nil)
	if len(c.Out) != 2+8*8 {
		t.Errorf("%d bytes", len(c.Out))
	}
	c.Out = c.Out[:0]
	c.Words(next, row)
	if len(c.Out) != 2+8 {
		t.Errorf("%d bytes beside the row before", len(c.Out))
	}
}

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

// Bytes that end too early, or are others, are Bad, and nothing panics or makes room for what is not there.
func TestOtherBytesAreBad(t *testing.T) {
	var w Coder
	some().code(&w)
	for n := range len(w.Out) {
		r := Read(string(w.Out[:n]))
		if new(all).code(&r); !r.Bad {
			t.Fatalf("%d bytes of %d are read as a whole", n, len(w.Out))
		}
	}
	r := Read(strings.Repeat("\xff", 300))
	new(all).code(&r)
	if !r.Bad {
		t.Error("ones are read")
	}
}

func TestWritingAllocatesNothing(t *testing.T) {
	a := some()
	var w Coder
	a.code(&w)
	if n := testing.AllocsPerRun(100, func() {
		w.Out = w.Out[:0]
		a.code(&w)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
