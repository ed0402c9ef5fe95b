package host

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Rejection is the answer to a client that a strategy turns away.
type Rejection struct {
	Status     int           // 400 to 599; 429 if the strategy set none
	Text       string        // at most abi.MaxText bytes of one line; "" = the host's own words
	RetryAfter time.Duration // 0 = the host's own estimate
}

// Offsets of what the guest writes into the header. A test compares them with abi's.
const (
	offOrderLen     = 120
	offRejectStatus = 152
	offRetryAfter   = 156
	offRejectText   = 160
	offRejectLen    = 164
	offHoldMillis   = 220
	offPairRow      = 228
)

// readRejection reads the fields of the header that a module has written for a rejection. A module of 1.0 has no room
// for it.
func readRejection(mem api.Memory, header []byte) *Rejection {
	r := &Rejection{Status: 429}
	if len(header) < offRejectLen+4 {
		return r
	}
	word := binary.LittleEndian.Uint32
	if n := word(header[offRejectStatus:]); n >= 400 && n <= 599 {
		r.Status = int(n)
	}
	r.RetryAfter = time.Duration(word(header[offRetryAfter:])) * time.Second
	r.Text = textAt(mem, word(header[offRejectText:]), word(header[offRejectLen:]))
	return r
}

// readHold reads for how long a module has the request wait; 0 for one of a version that cannot.
func readHold(header []byte) time.Duration {
	if len(header) < offHoldMillis+4 {
		return 0
	}
	return time.Duration(binary.LittleEndian.Uint32(header[offHoldMillis:])) * time.Millisecond
}

// textAt reads a text of a module's memory as one line of at most abi.MaxText bytes.
func textAt(mem api.Memory, ptr, n uint32) string {
	b, ok := mem.Read(ptr, min(n, abi.MaxText))
	if !ok {
		return ""
	}
	return oneLine(string(b))
}

// oneLine makes s fit for a log line, a header and a JSON text: valid UTF-8, no control characters, at most abi.MaxText
// bytes.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c == utf8.RuneError:
			return -1
		case unicode.IsControl(c), c == '\u2028', c == '\u2029':
			return ' '
		}
		return c
	}, s)
	for len(s) > abi.MaxText || !utf8.ValidString(s) {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return strings.TrimSpace(s)
}
