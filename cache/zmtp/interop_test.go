package zmtp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/pyvenv"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/zmqpub"
)

// libzmq is a Python with pyzmq, which brings libzmq with it.
func libzmq(t *testing.T) (python string) {
	t.Helper()
	return pyvenv.Python(t, "../../.cache/zmtp", "testdata/requirements.txt", "nothing was exchanged with libzmq")
}

// peer is a process with one libzmq socket; see testdata/peer.py.
type peer struct {
	t   *testing.T
	out *bufio.Scanner
}

func startPeer(t *testing.T, kind zmtp.Kind, how, address string, count int) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t.Context() ends before the cleanup waits
	cmd := exec.CommandContext(ctx, libzmq(t), "testdata/peer.py", string(kind), how, address, fmt.Sprint(count))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the %s of libzmq: %v", kind, err)
		}
		cancel()
	})
	return &peer{t: t, out: bufio.NewScanner(out)}
}

// line returns the next line that the peer prints.
func (p *peer) line() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatal("the libzmq peer ended early")
	}
	return p.out.Text()
}

// sample is message i as peer.py makes it.
func sample(i int) [][]byte {
	sizes := []int{0, 200, 300, 100000}
	return [][]byte{[]byte("kv@w@m"), binary.BigEndian.AppendUint64(nil, uint64(i)),
		bytes.Repeat([]byte{byte(i)}, sizes[i%4])}
}

const samples = 400

// receiveSamples receives what peer.py sends.
func receiveSamples(c *zmtp.Conn) error {
	for i := range samples {
		m, err := c.Recv()
		if err != nil {
			return err
		}
		want := sample(i)
		if len(m) != 3 || !bytes.Equal(m[0], want[0]) || !bytes.Equal(m[1], want[1]) || !bytes.Equal(m[2], want[2]) {
			return fmt.Errorf("message %d is %.20q; want %.20q", i, m, want)
		}
	}
	if m, err := c.Recv(); err != nil || len(m) != 2 || string(m[1]) != "end" {
		return fmt.Errorf("after the heartbeats comes %q, %w; want the end", m, err)
	}
	return nil
}

func sampleDigest() string {
	d := sha256.New()
	for i := range samples {
		for _, f := range sample(i) {
			d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f))))
			d.Write(f)
		}
	}
	return hex.EncodeToString(d.Sum(nil))
}

func TestLibzmqPublishes(t *testing.T) {
	for _, addr := range []string{"tcp://127.0.0.1:*", "ipc://" + filepath.Join(t.TempDir(), "pub")} {
		p := startPeer(t, zmtp.PUB, "bind", addr, samples)
		c := zmtp.DialFor(t, p.line(), zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{"kv@"}, Heartbeat: time.Second})
		if err := receiveSamples(c); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	done := make(chan error, 1)
	_, at := zmtp.ListenFor(t, "tcp://127.0.0.1:0", zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{"kv@"}}, func(c *zmtp.Conn) {
		done <- receiveSamples(c)
	})
	startPeer(t, zmtp.PUB, "connect", at, samples)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLibzmqSubscribes(t *testing.T) {
	p := zmqpub.New(zmtp.Config{Heartbeat: time.Second}, samples+1)
	l, err := p.Listen(t.Context(), "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	sub := startPeer(t, zmtp.SUB, "connect", l.Addr().String(), samples)
	publish := func(sub *peer) {
		waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("kv@w@m") == 1 })
		p.Publish([]byte("other"), []byte("not wanted"))
		for i := range samples {
			p.Publish(sample(i)...)
		}
		if got := sub.line(); got != sampleDigest() {
			t.Errorf("libzmq received %s; want %s", got, sampleDigest())
		}
	}
	publish(sub)
	waittest.Until(t, "subscribers come and go", func() bool { return p.Subscribers("kv@w@m") == 0 })
	sub = startPeer(t, zmtp.SUB, "bind", "tcp://127.0.0.1:*", samples)
	at := sub.line()
	go p.Connect(t.Context(), at)
	publish(sub)
}

func TestLibzmqPushesAndPulls(t *testing.T) {
	done := make(chan error, 1)
	_, at := zmtp.ListenFor(t, "tcp://127.0.0.1:0", zmtp.Config{Kind: zmtp.PULL}, func(c *zmtp.Conn) {
		done <- receiveSamples(c)
	})
	startPeer(t, zmtp.PUSH, "connect", at, samples)
	if err := <-done; err != nil {
		t.Error(err)
	}
	pull := startPeer(t, zmtp.PULL, "bind", "tcp://127.0.0.1:*", samples)
	c := zmtp.DialFor(t, pull.line(), zmtp.Config{Kind: zmtp.PUSH})
	for i := range samples {
		if err := c.Send(sample(i)...); err != nil {
			t.Fatal(err)
		}
	}
	if got := pull.line(); got != sampleDigest() {
		t.Errorf("libzmq received %s; want %s", got, sampleDigest())
	}
}

func TestLibzmqAsksAndAnswers(t *testing.T) {
	router := startPeer(t, zmtp.ROUTER, "bind", "tcp://127.0.0.1:*", 2)
	c := zmtp.DialFor(t, router.line(), zmtp.Config{Kind: zmtp.DEALER})
	for _, start := range []string{"00000000", "00000001"} {
		if err := c.Send(nil, []byte(start)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"|topic|" + start + "|payload", "||\xff\xff\xff\xff\xff\xff\xff\xff|"} {
			m, err := c.Recv()
			if got := string(bytes.Join(m, []byte("|"))); err != nil || got != want {
				t.Errorf("answer %q, %v; want %q", got, err, want)
			}
		}
	}
	_, at := zmtp.ListenFor(t, "tcp://127.0.0.1:0", zmtp.Config{Kind: zmtp.ROUTER}, zmtp.Echo)
	dealer := startPeer(t, zmtp.DEALER, "connect", at, 3)
	req := startPeer(t, zmtp.REQ, "connect", at, 3)
	for i := range 3 {
		if got, want := dealer.line(), fmt.Sprintf("|ask|%d", i); got != want {
			t.Errorf("DEALER got %q; want %q", got, want)
		}
		if got, want := req.line(), fmt.Sprintf("ask|%d", i); got != want {
			t.Errorf("REQ got %q; want %q", got, want)
		}
	}
}
