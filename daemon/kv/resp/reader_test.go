package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/warmpath/warmpath/cache/parts/quota"
)

// keeper is a sink for tests.
type keeper struct {
	taken []byte
	odd   bool // the client has yet to authenticate
}

func (k *keeper) stranger() bool { return k.odd }

func (k *keeper) wantsValue(args [][]byte) bool { return equalFold(args[0], "SET") }

func (k *keeper) take(_ []byte, n int64, in *bufio.Reader) (err error) {
	if n > 1<<20 { // from the fuzzer: not worth the memory
		return io.ErrUnexpectedEOF
	}
	k.taken = make([]byte, n)
	_, err = io.ReadFull(in, k.taken)
	return err
}

// readAll returns every command as its words, and the error that ends the stream.
func readAll(in io.Reader) (commands [][]string, err error) {
	k := &keeper{}
	r := reader{in: bufio.NewReaderSize(in, 64), sink: k, share: quota.NewShare(nil, 0)}
	for {
		if err := r.next(); err != nil {
			return commands, err
		}
		var words []string
		for i, a := range r.args {
			if i == 2 && r.value {
				a = k.taken
			}
			words = append(words, string(a))
		}
		commands = append(commands, words)
	}
}

// FuzzReader: for any input the reader ends with an error, the same whether the bytes come at once or one by one. A
// command that is written anew is read as the same.
func FuzzReader(f *testing.F) {
	f.Add([]byte(cmd("SET", "k", "v", "EX", "5") + cmd("GET", "k")))
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*-1\r\n\r\nset a 'b c' \"\\x00\\n\"\r\n"))
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc"))
	f.Add([]byte("*1048576\r\n$0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, errA := readAll(bytes.NewReader(data))
		b, errB := readAll(iotest.OneByteReader(bytes.NewReader(data)))
		if len(a) != len(b) || errA.Error() != errB.Error() {
			t.Fatalf("at once %d commands, %v; byte by byte %d, %v", len(a), errA, len(b), errB)
		}
		for i := range a {
			if strings.Join(a[i], "\x00") != strings.Join(b[i], "\x00") {
				t.Fatalf("%q and %q", a[i], b[i])
			}
			if len(a[i]) == 0 {
				continue
			}
			again, err := readAll(strings.NewReader(cmd(a[i]...)))
			if len(again) != 1 || !errors.Is(err, io.EOF) || strings.Join(again[0], "\x00") != strings.Join(a[i], "\x00") {
				t.Fatalf("%q is read as %q, %v", a[i], again, err)
			}
		}
	})
}

// Memory for an argument grows with its bytes, and a client that has yet to authenticate can only send short commands.
func TestArgumentsAreBounded(t *testing.T) {
	k := &keeper{}
	r := reader{in: bufio.NewReader(strings.NewReader("*2\r\n$3\r\nGET\r\n$8000000\r\nabc")), sink: k, share: quota.NewShare(nil, 0)}
	if err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) || cap(r.buf) > 2*argStep {
		t.Errorf("%v after %d bytes of memory for 3 of 8,000,000", err, cap(r.buf))
	}
	f := func(odd bool, command, want string) {
		t.Helper()
		r := reader{in: bufio.NewReader(strings.NewReader(command)), sink: &keeper{odd: odd}, share: quota.NewShare(nil, 0)}
		if err := r.next(); fmt.Sprint(err) != want {
			t.Errorf("before AUTH %v, %.40q: %v; want %s", odd, command, err, want)
		}
	}
	long := strings.Repeat("x", strangerBulk+1)
	f(true, cmd("AUTH", "user", "password"), "<nil>")
	f(true, cmd("GET", long[1:]), "<nil>")
	f(true, cmd("GET", long), "ERR Protocol error: unauthenticated bulk length")
	f(true, cmd("SET", "k", long), "ERR Protocol error: unauthenticated bulk length")
	f(true, cmd(strings.Fields(strings.Repeat("x ", 11))...), "ERR Protocol error: unauthenticated multibulk length")
	f(false, cmd("GET", long), "<nil>")
	f(false, cmd(strings.Fields(strings.Repeat("x ", 11))...), "<nil>")
	f(false, cmd("ECHO", strings.Repeat(long, 20)), "<nil>")
}
