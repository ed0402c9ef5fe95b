package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/warmpath/warmpath/cache/parts/quota"
)

const (
	readBuffer = 16 << 10  // the rest of a value goes straight to its place
	maxLine    = 64 << 10  // of an inline command; Redis's limit
	maxArgs    = 1 << 20   // of a command; Redis's limit
	maxArgBuf  = 8 << 20   // bytes of a command's arguments together, without the value of SET
	keptArgBuf = 16 << 10  // of the buffer for them, kept between two commands and not counted in Server.held
	keptArgs   = 64        // arguments, likewise
	argBytes   = 32        // what an argument takes beside its bytes
	maxBulk    = 512 << 20 // a longer value is an error of the protocol; Redis's proto-max-bulk-len

	argStep      = 8 << 10  // memory for an argument grows with its bytes, not with its announced length
	strangerArgs = 10       // of a command before AUTH; Redis's limit
	strangerBulk = 16 << 10 // of an argument before AUTH; Redis's limit
)

// protocolError is sent to the client, and then the connection is closed: the bytes after it cannot be parsed.
type protocolError string

// Error returns the client's error line.
func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

// reader reads commands. The value of a SET bypasses it: see sink.
type reader struct {
	in    *bufio.Reader
	sink  sink
	share *quota.Share // of the bytes of all clients' arguments
	buf   []byte       // the arguments' bytes
	ends  []int        // end of each argument in buf
	args  [][]byte     // of the last command; valid until the next one
	value bool         // args[2] is empty, and its bytes went to the sink
}

// sink receives the value of SET.
type sink interface {
	// wantsValue reports whether the third argument of the command is a value for take.
	wantsValue(args [][]byte) bool
	// stranger reports whether the client has yet to authenticate: it may only send short commands.
	stranger() bool
	// take reads a value of all n bytes from in, even if it refuses the value. Its error ends the connection.
	take(key []byte, n int64, in *bufio.Reader) error
}

// next reads a command. An empty line makes one without arguments.
func (r *reader) next() error {
	r.value = false
	first, err := r.in.ReadByte()
	if err != nil {
		return err
	}
	if first != '*' {
		if err := r.in.UnreadByte(); err != nil {
			return err
		}
		return r.inline()
	}
	n, err := r.number("invalid multibulk length", maxArgs)
	if err != nil {
		return err
	}
	if n > strangerArgs && r.sink.stranger() {
		return protocolError("unauthenticated multibulk length")
	}
	for i := range n {
		if err := r.bulk(int(i)); err != nil {
			return err
		}
	}
	r.slice()
	return nil
}

// forget drops the last command.
func (r *reader) forget() {
	clear(r.args) // they point into the buffer
	if cap(r.buf) > keptArgBuf {
		r.buf = nil
	}
	if cap(r.args) > keptArgs || cap(r.ends) > keptArgs {
		r.ends, r.args = nil, nil
	}
	r.buf, r.ends, r.args = r.buf[:0], r.ends[:0], r.args[:0]
	r.share.Drop()
}

// hold counts bytes of a command. The client gets an error if all clients together have sent too many.
func (r *reader) hold(n int64) error {
	if r.share.Grow(n) != nil {
		return protocolError("the clients' commands together are too long; try again")
	}
	return nil
}

// slice makes args from buf, which no longer moves.
func (r *reader) slice() {
	r.args = r.args[:0]
	start := 0
	for _, end := range r.ends {
		r.args = append(r.args, r.buf[start:end:end])
		start = end
	}
}

// bulk reads the argument with index i.
func (r *reader) bulk(i int) error {
	mark, err := r.in.ReadByte()
	if err != nil {
		return ended(err)
	}
	if mark != '$' {
		return protocolError(fmt.Sprintf("expected '$', got %.20q", string(rune(mark))))
	}
	n, err := r.number("invalid bulk length", maxBulk)
	if err != nil {
		return err
	}
	if n < 0 {
		return protocolError("invalid bulk length")
	}
	if n > strangerBulk && r.sink.stranger() {
		return protocolError("unauthenticated bulk length")
	}
	if i == 2 {
		r.slice()
		if r.sink.wantsValue(r.args) {
			r.value = true
			if err := r.sink.take(r.args[1], n, r.in); err != nil {
				return ended(err)
			}
			r.ends = append(r.ends, len(r.buf))
			return r.crlf()
		}
	}
	if int64(len(r.buf))+n+16*int64(len(r.ends)) > maxArgBuf {
		return protocolError(fmt.Sprintf("the arguments of a command are longer than %d bytes", maxArgBuf))
	}
	if err := r.hold(int64(len(r.buf)) + argBytes*int64(len(r.ends))); err != nil {
		return err
	}
	for n > 0 {
		step := min(n, max(argStep, int64(len(r.buf))))
		start := len(r.buf)
		if err := r.hold(int64(start) + step + argBytes*int64(len(r.ends))); err != nil {
			return err
		}
		r.buf = append(r.buf, make([]byte, step)...)
		if _, err := io.ReadFull(r.in, r.buf[start:]); err != nil {
			return ended(err)
		}
		n -= step
	}
	r.ends = append(r.ends, len(r.buf))
	return r.crlf()
}

// crlf reads the end of an argument.
func (r *reader) crlf() error {
	for _, want := range "\r\n" {
		got, err := r.in.ReadByte()
		if err != nil {
			return ended(err)
		}
		if got != byte(want) {
			return protocolError("invalid bulk length: the argument does not end there")
		}
	}
	return nil
}

// number reads a length, -1 to most, up to the end of its line.
func (r *reader) number(complaint string, most int64) (int64, error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return 0, ended(err)
	}
	if len(line) < 2 || len(line) > 24 || line[len(line)-2] != '\r' {
		return 0, protocolError(complaint)
	}
	digits := string(line[:len(line)-2])
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] == '+' || n < -1 || n > most {
		return 0, protocolError(complaint)
	}
	return n, nil
}

// ended returns the error of a stream that breaks off within a command.
func ended(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return protocolError("too big mbulk count string")
	}
	return err
}

// inline reads a command as a person types it: words, some of them in quotes.
func (r *reader) inline() error {
	for {
		part, err := r.in.ReadSlice('\n')
		size := int64(len(r.buf) + len(part))
		if size > maxLine {
			return protocolError("too big inline request")
		}
		if err := r.hold(size + argBytes*size/2); err != nil { // a word has a byte and a space at least
			return err
		}
		r.buf = append(r.buf, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return ended(err)
		}
	}
	words, ok := splitWords(r.args[:0], r.buf)
	if !ok {
		return protocolError("unbalanced quotes in request")
	}
	r.args = words
	return nil
}

// splitWords appends the words of a line, split as Redis does: "..." with \n, \r, \t, \a, \b and \xHH, '...' with \',
// and words without space. They stand in the line's memory, which it overwrites.
func splitWords(words [][]byte, line []byte) (all [][]byte, ok bool) {
	s := splitter{line: line}
	for {
		for s.i < len(line) && isSpace(line[s.i]) {
			s.i++
		}
		if s.i == len(line) {
			return words, true
		}
		word, ok := s.word()
		if !ok {
			return nil, false
		}
		words = append(words, word[:len(word):len(word)])
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

type splitter struct {
	line []byte
	i    int
}

// word reads one word, into the place where it stands: it is never longer than its source. A quote must be followed by
// a space or the end.
func (s *splitter) word() (word []byte, ok bool) {
	word = s.line[s.i:s.i]
	var quote byte
	for ; s.i < len(s.line); s.i++ {
		c := s.line[s.i]
		switch {
		case quote != 0 && c == quote:
			s.i++
			return word, s.i == len(s.line) || isSpace(s.line[s.i])
		case quote != 0 && c == '\\' && s.i+1 < len(s.line):
			word = s.escape(word, quote)
		case quote != 0:
			word = append(word, c)
		case isSpace(c):
			return word, true
		case c == '"' || c == '\'':
			quote = c
		default:
			word = append(word, c)
		}
	}
	return word, quote == 0
}

// escape reads an escape sequence after its backslash, and stops at the sequence's last character.
func (s *splitter) escape(word []byte, quote byte) []byte {
	c := s.line[s.i+1]
	if quote == '\'' && c != '\'' {
		return append(word, '\\')
	}
	s.i++
	if quote == '\'' {
		return append(word, c)
	}
	if c == 'x' && s.i+2 < len(s.line) {
		if n, err := strconv.ParseUint(string(s.line[s.i+1:s.i+3]), 16, 8); err == nil {
			s.i += 2
			return append(word, byte(n))
		}
	}
	for i, from := range []byte("nrtba") {
		if c == from {
			return append(word, "\n\r\t\b\a"[i])
		}
	}
	return append(word, c)
}
