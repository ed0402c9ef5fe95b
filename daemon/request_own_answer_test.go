package daemon

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// deal is what workers do with one request, and what its client may see: all of it follows from the request's number.
type deal struct {
	tag    string
	fails  []int // how the attempts before the last one fail
	form   int   // of the answer
	parts  []string
	fields int // beside those of every answer
	breaks bool
}

const (
	formEvents = iota
	formChunks
	formLength
	formSmall
	formClose
	formCoded
	formRefusal
	forms
)

// newDeal returns the deal of a request.
func newDeal(n uint64) (d deal) {
	x := rand.New(rand.NewPCG(n, 7))
	d.tag = fmt.Sprintf("T%dT", n)
	d.form = x.IntN(forms)
	if x.IntN(2) == 0 {
		d.form = formEvents
	}
	if x.IntN(12) == 0 {
		for range 1 + x.IntN(2) {
			d.fails = append(d.fails, x.IntN(4))
		}
		if len(d.fails) == 2 && d.fails[0] == d.fails[1] { // two workers that fail a request alike: the client is told
			d.fails = d.fails[:1]
		}
	}
	d.fields = x.IntN(9)
	sizes := []int{1, 1, 20, 200, 900, 1000, 1010, 1024, 3000, 5000, 40_000}
	for range 1 + x.IntN(12) {
		text := strings.Repeat(d.tag, 1+sizes[x.IntN(len(sizes))]/len(d.tag))
		if d.form == formEvents {
			text = fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", text)
		}
		d.parts = append(d.parts, text)
	}
	switch d.form {
	case formEvents:
		d.breaks = x.IntN(8) == 0
		if !d.breaks {
			d.parts = append(d.parts, "data: [DONE]\n\n")
		}
	case formSmall, formRefusal:
		d.parts = []string{fmt.Sprintf(`{"object":"text_completion","choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, strings.Join(d.parts, ""))}
	case formLength:
		d.parts = append(d.parts, strings.Repeat(d.tag, 280<<10/len(d.tag)))
	}
	return d
}

// text returns the body of the answer.
func (d *deal) text() string { return strings.Join(d.parts, "") }

// answer writes what an attempt gets. It returns whether the connection serves on.
func (d *deal) answer(c net.Conn, attempt int, x *rand.Rand) bool {
	if attempt < len(d.fails) {
		bad := []string{"HTTP/1.1 503 x\r\nX-Tag: wrong\r\nContent-Length: 5\r\n\r\nwrong", "", eventChunks,
			eventChunks + chunk("data: {\"error\":{\"message\":\"wrong\",\"code\":500}}\n\n")}
		io.WriteString(c, bad[d.fails[attempt]])
		return d.fails[attempt] == 0
	}
	b := d.head()
	chunked := strings.Contains(b.String(), "chunked")
	for _, p := range d.parts {
		if chunked {
			p = chunk(p)
		}
		b.WriteString(p)
	}
	if chunked && !d.breaks {
		b.WriteString("0\r\n\r\n")
	}
	for b.Len() > 0 { // in pieces of any size, some of which the router reads alone
		n := 1 + x.IntN(1+min(b.Len(), 1500<<(4*x.IntN(3))))
		if _, err := c.Write(b.Next(n)); err != nil {
			return false
		}
		if x.IntN(4) == 0 {
			time.Sleep(time.Duration(x.IntN(3000)) * time.Microsecond)
		}
	}
	return d.form != formClose && !d.breaks
}

// head returns the head of the answer.
func (d *deal) head() (b bytes.Buffer) {
	status, kind, length := 200, "application/octet-stream", -1
	switch d.form {
	case formEvents, formCoded:
		kind = "text/event-stream"
	case formSmall:
		kind = "application/json"
		length = len(d.text())
	case formLength:
		length = len(d.text())
	case formRefusal:
		status, kind, length = 400, "application/json", len(d.text())
	}
	fmt.Fprintf(&b, "HTTP/1.1 %d x\r\nDate: x\r\nServer: y\r\nSet-Cookie: a=%s\r\nConnection: X-Hop\r\nX-Hop: %s\r\nX-Tag: %s\r\nSet-Cookie: b=%s\r\nContent-Type: %s\r\n", status, d.tag, d.tag, d.tag, d.tag, kind)
	for i := range d.fields {
		fmt.Fprintf(&b, "X-More: %d %s\r\n", i, d.tag)
	}
	switch {
	case d.form == formCoded:
		b.WriteString("Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n")
	case length >= 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", length)
	case d.form == formClose:
		b.WriteString("\r\n")
	default:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	}
	return b
}

// tags finds the marks of requests.
var tags = regexp.MustCompile(`T\d+T`)

// dealer is workers that answer each request as its deal says.
type dealer struct {
	attempts sync.Map // by number
}

// serve answers the requests on a connection.
func (d *dealer) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method != "POST" {
			text := ""
			if r.URL.Path == "/v1/models" {
				text = `{"object":"list","data":[{"id":"sim","object":"model"}]}`
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
			continue
		}
		var n uint64
		fmt.Sscan(r.Header.Get("X-Number"), &n)
		one := newDeal(n)
		for _, tag := range append(tags.FindAllString(fmt.Sprint(r.Header), -1), tags.FindAllString(string(body), -1)...) {
			if tag != one.tag {
				fmt.Fprintf(c, "HTTP/1.1 200 x\r\nX-Tag: CROSSED\r\nContent-Length: 0\r\n\r\n")
				return
			}
		}
		k, _ := d.attempts.LoadOrStore(n, new(atomic.Int32))
		attempt := int(k.(*atomic.Int32).Add(1)) - 1
		if !one.answer(c, attempt, rand.New(rand.NewPCG(n, rand.Uint64()))) {
			return
		}
	}
}

// listen makes a worker and returns its URL.
func (d *dealer) listen(t *testing.T, secure *tls.Config) string {
	if secure == nil {
		return "http://" + porttest.Serve(t, func(c *net.TCPConn) { d.serve(c) })
	}
	return "https://" + porttest.Serve(t, func(c *net.TCPConn) { d.serve(tls.Server(c, secure)) })
}

// patron is a client of the dealer, with a connection that stays open.
type patron struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
	x *rand.Rand
}

// ask sends a request and checks its answer. It returns whether the connection serves on.
func (p *patron) ask(n uint64) bool {
	d := newDeal(n)
	old := p.x.IntN(10) == 0
	body := fmt.Sprintf(`{"model":"sim","prompt":%q,"stream":%v,"max_tokens":5,"user":%q}`,
		strings.Repeat(d.tag, 1+p.x.IntN(400)), d.form == formEvents, d.tag)
	head := fmt.Sprintf("Host: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Number: %d\r\nX-Request-Id: %s\r\n"+
		"X-Warmpath-Explain: %d\r\n", len(body), n, d.tag, p.x.IntN(2))
	fmt.Fprintf(p.c, "POST /v1/completions HTTP/1.%d\r\n%s\r\n%s", map[bool]int{false: 1, true: 0}[old], head, body)
	if p.x.IntN(15) == 0 { // this client leaves
		time.Sleep(time.Duration(p.x.IntN(8)) * time.Millisecond)
		return false
	}
	resp, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Errorf("%s: %v", d.tag, err)
		return false
	}
	got, err := io.ReadAll(resp.Body)
	for _, tag := range tags.FindAllString(fmt.Sprint(resp.Header)+string(got), -1) {
		if tag != d.tag {
			p.t.Errorf("%s: sees %s", d.tag, tag)
			return false
		}
	}
	if resp.Header.Get("X-Request-Id") != d.tag {
		p.t.Errorf("%s: %v", d.tag, resp.Header)
	}
	if resp.Header.Get("X-Tag") == "" && bytes.HasPrefix(got, []byte(`{"error"`)) { // the router's own
		return err == nil && !resp.Close
	}
	if resp.Header.Get("X-Tag") == "" && slices.Contains(d.fails, 3) && bytes.Contains(got, []byte(`"wrong"`)) { // a worker's own
		return err == nil && !resp.Close
	}
	if resp.StatusCode == 503 && slices.Contains(d.fails, 0) && string(got) == "wrong" { // others were full lately, too
		return err == nil && !resp.Close && !old
	}
	p.checkHeader(&d, resp.Header)
	whole, event, _ := strings.Cut(string(got), "data: {\"error\"")
	switch {
	case d.breaks && (strings.TrimRight(whole, "\n") != strings.TrimRight(d.text(), "\n") || event == "" || err == nil && !old),
		!d.breaks && (whole != d.text() || event != "" || err != nil):
		p.t.Errorf("%s: form %d, breaks %v: %v, %d bytes of %d", d.tag, d.form, d.breaks, err, len(whole), len(d.text()))
	}
	return err == nil && !resp.Close && !old
}

// checkHeader checks that an answer has its own fields, in their order.
func (p *patron) checkHeader(d *deal, h http.Header) {
	p.t.Helper()
	want := []string{d.tag, "a=" + d.tag, "b=" + d.tag}
	for i := range d.fields {
		want = append(want, fmt.Sprint(i, " ", d.tag))
	}
	got := append(h.Values("X-Tag"), h.Values("Set-Cookie")...)
	if n := len(got); n == 4 && strings.HasPrefix(got[3], "wp=") { // the router's own, behind the worker's
		got = got[:3]
	}
	got = append(got, h.Values("X-More")...)
	if !slices.Equal(got, want) || h.Get("X-Hop") != "" || h.Get("Server") != "" || len(h.Values("Date")) != 1 {
		p.t.Errorf("%s: %q", d.tag, h)
	}
}

// TestEachClientHasItsOwnAnswer: streams, retries, breaks and whole answers in any order, on connections that stay open,
// over TLS and not. The memory of each request serves others, and no client sees another's fields or text.
func TestEachClientHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	d, dir := new(dealer), t.TempDir()
	authority := &tls.Config{Certificates: []tls.Certificate{certtest.New(t, dir, "worker", "worker").TLS}}
	certtest.New(t, dir, "front", "front")
	for _, secure := range []*tls.Config{nil, authority} {
		toml := settings("prefixaware", d.listen(t, secure), d.listen(t, secure), d.listen(t, secure), d.listen(t, secure))
		if secure != nil {
			toml = withServer(toml, fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q", dir+"/front.pem", dir+"/front.key"))
			toml = withPool(toml, fmt.Sprintf("tls_ca_file = %q", dir+"/worker.pem"))
		}
		r := start(t, "[sessions]\ncookie = \"wp\"\n"+withServer(toml, "explain = true"), 4)
		var next atomic.Uint64
		var clients sync.WaitGroup
		for i := range 16 {
			clients.Go(func() {
				x := rand.New(rand.NewPCG(uint64(i), 1))
				for n := next.Add(1); n < 200 && !t.Failed(); {
					c, err := net.Dial("tcp", r.Addr())
					if err != nil {
						t.Error(err)
						return
					}
					if secure != nil {
						c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
					}
					c.SetDeadline(time.Now().Add(30 * time.Second))
					for p := (&patron{t, c, bufio.NewReader(c), x}); p.ask(n) && n < 200; n = next.Add(1) {
					}
					c.Close()
					n = next.Add(1)
				}
			})
		}
		clients.Wait()
		eventually(t, "nothing is under way", func() bool { return r.front.Stats().InFlight == 0 && r.inFlight() == 0 })
		d.attempts.Clear()
	}
}
