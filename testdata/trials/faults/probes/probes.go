// Package probes holds raw requests that two parsers may read differently, for those who try them on a router.
package probes

import (
	"net"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// Probe is a request in raw bytes.
type Probe struct {
	Name string
	Raw  string
}

const smuggled = "GET /v1/smuggled HTTP/1.1\r\nHost: r\r\n\r\n"

// headed is a POST with the given fields and body. Host and path are sound.
func headed(fields, body string) string {
	return "POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n" + fields + "\r\n" + body
}

// chunkedBody is a POST with the given bytes where chunks should be.
func chunkedBody(chunks string) string { return headed("Transfer-Encoding: chunked\r\n", chunks) }

// Body is the one that the probes carry.
const Body = `{"model":"sim","prompt":"x"}` // 28 = 0x1c bytes

// Controls are well-formed: they must reach the worker, or the table shows nothing.
var Controls = []Probe{
	{"content-length", headed("Content-Length: 28\r\n", Body)},
	{"chunked", chunkedBody("1c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"chunked in upper case", headed("Transfer-Encoding: CHUNKED\r\n", "1C\r\n"+Body+"\r\n0\r\n\r\n")},
	{"two chunks and an extension", chunkedBody("10;name=value\r\n" + Body[:16] + "\r\nc\r\n" + Body[16:] +
		"\r\n0\r\n\r\n")},
	{"lower case fields", "POST /v1/completions HTTP/1.1\r\nhost: r\r\ncontent-length: 28\r\n\r\n" + Body},
}

// Ambiguous requests may be read in two ways, or in none: 0 may reach a worker.
var Ambiguous = []Probe{
	{"CL and TE", headed("Content-Length: 28\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled)},
	{"TE and CL", headed("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "1c\r\n"+Body+"\r\n0\r\n\r\n")},
	{"TE: xchunked", headed("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+smuggled)},
	{"TE: chunked, identity", headed("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")},
	{"TE: identity", headed("Transfer-Encoding: identity\r\nContent-Length: 28\r\n", Body)},
	{"TE: gzip, chunked", headed("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
	{"TE twice", headed("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+smuggled)},
	{"TE twice alike", headed("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
	{"TE: quoted", headed("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")},
	{"TE with a vertical tab", headed("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")},
	{"TE empty", headed("Transfer-Encoding: \r\nContent-Length: 28\r\n", Body)},
	{"TE in HTTP/1.0", strings.Replace(chunkedBody("0\r\n\r\n"+smuggled), "HTTP/1.1", "HTTP/1.0", 1)},
	{"two CLs that differ", headed("Content-Length: 28\r\nContent-Length: 0\r\n", Body)},
	{"two CLs alike", headed("Content-Length: 28\r\nContent-Length: 28\r\n", Body)},
	{"CL list", headed("Content-Length: 28, 28\r\n", Body)},
	{"CL with plus", headed("Content-Length: +28\r\n", Body)},
	{"CL with minus", headed("Content-Length: -28\r\n", Body)},
	{"CL with a space in it", headed("Content-Length: 2 8\r\n", Body)},
	{"CL in hex", headed("Content-Length: 0x1c\r\n", Body)},
	{"CL with an underscore", headed("Content-Length: 2_8\r\n", Body)},
	{"CL empty", headed("Content-Length: \r\n", Body)},
	{"CL overflows", headed("Content-Length: 18446744073709551644\r\n", Body)},
	{"CL not a number", headed("Content-Length: many\r\n", Body)},
	{"space before colon", headed("Content-Length : 28\r\n", Body)},
	{"space before colon of TE", headed("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")},
	{"tab before colon", headed("Content-Length\t: 28\r\n", Body)},
	{"obs-fold", headed("X-A: b\r\n c\r\nContent-Length: 28\r\n", Body)},
	{"obs-fold of TE", headed("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")},
	{"space before the first field",
		"POST /v1/completions HTTP/1.1\r\n Host: r\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"bare LF between fields", "POST /v1/completions HTTP/1.1\r\nHost: r\nContent-Length: 28\r\n\r\n" + Body},
	{"bare LF hides a length", headed("X-A: b\nContent-Length: 0\r\nContent-Length: 28\r\n", Body)},
	{"bare CR in a value", headed("X-A: b\rContent-Length: 0\r\nContent-Length: 28\r\n", Body)},
	{"NUL in a value", headed("X-A: b\x00c\r\nContent-Length: 28\r\n", Body)},
	{"NUL in a name", headed("X\x00A: b\r\nContent-Length: 28\r\n", Body)},
	{"control byte in a value", headed("X-A: b\x01c\r\nContent-Length: 28\r\n", Body)},
	{"no colon", headed("X-A\r\nContent-Length: 28\r\n", Body)},
	{"empty name", headed(": b\r\nContent-Length: 28\r\n", Body)},
	{"bracket in a name", headed("X[A: b\r\nContent-Length: 28\r\n", Body)},
	{"no Host", "POST /v1/completions HTTP/1.1\r\nContent-Length: 28\r\n\r\n" + Body},
	{"two Hosts", "POST /v1/completions HTTP/1.1\r\nHost: r\r\nHost: s\r\nContent-Length: 28\r\n\r\n" + Body},
	{"Host empty", "POST /v1/completions HTTP/1.1\r\nHost:\r\nContent-Length: 28\r\n\r\n" + Body},
	{"Host with a slash", "POST /v1/completions HTTP/1.1\r\nHost: r/evil\r\nContent-Length: 28\r\n\r\n" + Body},
	{"absolute form with another host", "POST http://other/v1/completions HTTP/1.1\r\nHost: r\r\nContent-Length: " +
		"28\r\n\r\n" + Body},
	{"chunk size overflows", chunkedBody("1000000000000001c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"chunk size negative", chunkedBody("-1c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"chunk size with plus", chunkedBody("+1c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"chunk size with 0x", chunkedBody("0x1c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"garbage after chunk size", chunkedBody("1c garbage\r\n" + Body + "\r\n0\r\n\r\n")},
	{"space before chunk size", chunkedBody(" 1c\r\n" + Body + "\r\n0\r\n\r\n")},
	{"chunk size empty", chunkedBody("\r\n" + Body + "\r\n0\r\n\r\n")},
	{"LF in a chunk extension", chunkedBody("1c;a\nb\r\n" + Body + "\r\n0\r\n\r\n")},
	{"bare LF after chunk size", chunkedBody("1c\n" + Body + "\r\n0\r\n\r\n")},
	{"bare CR in a chunk extension", chunkedBody("1c;a\rb\r\n" + Body + "\r\n0\r\n\r\n")},
	{"no CRLF after a chunk", chunkedBody("1c\r\n" + Body + "0\r\n\r\n")},
	{"bare LF after a chunk", chunkedBody("1c\r\n" + Body + "\n0\r\n\r\n")},
	{"chunk longer than its size", chunkedBody("4\r\n" + Body + "\r\n0\r\n\r\n")},
	{"length in the trailer", chunkedBody("1c\r\n" + Body + "\r\n0\r\nContent-Length: 5\r\nno colon\r\n\r\n")},
	{"HTTP/0.9", "GET /v1/smuggled\r\n"},
	{"HTTP/2.0 in the request line", "POST /v1/completions HTTP/2.0\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"HTTP/1.10", "POST /v1/completions HTTP/1.10\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"HTTP/1.1 with junk", "POST /v1/completions HTTP/1.1x\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"two spaces in the request line", "POST  /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"space in the path", "POST /v1/comp letions HTTP/1.1\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"tab in the request line", "POST\t/v1/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"control byte in the path", "POST /v1/comp\x01letions HTTP/1.1\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"method with a brace", "PO{ST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 28\r\n\r\n" + Body},
	{"CONNECT", "CONNECT other:80 HTTP/1.1\r\nHost: other:80\r\n\r\n"},
	{"huge request line", "GET /v1/" + strings.Repeat("a", 300<<10) + " HTTP/1.1\r\nHost: r\r\n\r\n"},
	{"200 KB of headers", headed(strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 200)+"Content-Length: 28\r\n",
		Body)},
}

// Send writes raw bytes on a connection of its own and returns all that comes back within wait, or until the
// connection ends.
func Send(addr, raw string, wait time.Duration) string {
	c, err := wire.Dial(addr)
	if err != nil {
		return ""
	}
	return Exchange(c, raw, wait)
}

// Exchange is Send on a connection that is open, which it closes.
func Exchange(c net.Conn, raw string, wait time.Duration) string {
	defer c.Close()
	go c.Write([]byte(raw)) // may be refused half-way
	var got []byte
	buf := make([]byte, 16<<10)
	for end := time.Now().Add(wait); len(got) < 1<<20; {
		c.SetReadDeadline(end)
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(got)
}
