package lmworker

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
)

// What goes into one message.
const (
	opsPerMessage    = 2000
	framesPerMessage = 50 // of 0.3.9, which has one operation a frame
	keysPerBatch     = 2000
)

// redial is how long a worker waits before it dials again.
const redial = 100 * time.Millisecond

// answerIn is how long an answer may take but for the first.
const answerIn = 5 * time.Second

// line is a socket of the worker's: a connection that is dialled again whenever it is lost.
type line struct {
	kind zmtp.Kind
	addr string
	conn *zmtp.Conn
	// answers has what came on conn, and is closed when it ends.
	answers chan []byte
}

// send sends a message, and dials until it can or ctx ends.
func (l *line) send(ctx context.Context, frames ...[]byte) error {
	for {
		if l.conn == nil {
			l.dial(ctx)
		}
		if l.conn != nil {
			if l.conn.Send(frames...) == nil { // fails at once where receive has found the end
				return nil
			}
			l.close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(redial):
		}
	}
}

// dial makes the connection if the peer is there.
func (l *line) dial(ctx context.Context) {
	c, err := zmtp.Dial(ctx, "tcp://"+l.addr, zmtp.Config{Kind: l.kind})
	if err != nil {
		return
	}
	l.conn = c
	l.answers = make(chan []byte, 1)
	go receive(c, l.answers)
}

// receive passes answers on until the connection ends, and notices that end: a Send would notice it one message too
// late.
func receive(c *zmtp.Conn, answers chan<- []byte) {
	defer close(answers)
	defer c.Close()
	for {
		m, err := c.Recv()
		if err != nil {
			return
		}
		select {
		case answers <- bytes.Clone(m[len(m)-1]): // Recv uses it again
		default: // nobody asked
		}
	}
}

// ask sends a message behind an empty frame, and returns the answer's fields.
func (l *line) ask(ctx context.Context, within time.Duration, message []byte) (map[string]any, error) {
	ctx, end := context.WithTimeout(ctx, within)
	defer end()
	if err := l.send(ctx, nil, message); err != nil {
		return nil, err
	}
	var raw []byte
	select {
	case raw = <-l.answers: // nil when the connection has ended
	case <-ctx.Done():
		l.close() // what comes late is the answer to another question
		return nil, ctx.Err()
	}
	v, err := msgpack.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, _ := v.(map[string]any)
	return fields, nil
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// run registers the worker and reports until ctx ends.
func (w *Worker) run(ctx context.Context) {
	push := &line{kind: zmtp.PUSH, addr: w.cfg.Pull}
	defer push.close()
	reply := &line{kind: zmtp.DEALER, addr: w.cfg.Reply}
	defer reply.close()
	beats := &line{kind: zmtp.DEALER, addr: w.cfg.Heartbeat}
	defer beats.close()
	if !w.register(ctx, push, reply, beats) {
		return
	}
	tick := time.NewTicker(w.cfg.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.sayGoodbye(push)
			return
		case <-w.wake:
			w.flush(ctx, push)
		case <-tick.C:
			if w.beat(ctx, push, beats) {
				w.sync(ctx, push, reply)
			}
		}
	}
}

// register sends RegisterMsg. It returns false if the worker is to be mute.
func (w *Worker) register(ctx context.Context, push, reply, beats *line) bool {
	message := w.cfg.alive("RegisterMsg")
	if w.cfg.Release == Release039 {
		return push.send(ctx, message) == nil
	}
	answer, err := reply.ask(ctx, w.cfg.Register, message)
	if err != nil {
		return false
	}
	extra, _ := answer["extra_config"].(map[string]any)
	if url, _ := extra["heartbeat_url"].(string); beats.addr == "" {
		beats.addr = url
	}
	return true
}

// flush sends what is queued.
func (w *Worker) flush(ctx context.Context, push *line) {
	for ctx.Err() == nil {
		if w.cfg.Release == Release039 {
			ops, _ := w.take(framesPerMessage)
			if len(ops) == 0 {
				return
			}
			var frames [][]byte
			for _, o := range ops {
				frames = append(frames, w.cfg.single(o))
			}
			push.send(ctx, frames...)
			continue
		}
		ops, seq := w.take(opsPerMessage)
		if len(ops) == 0 {
			return
		}
		push.send(ctx, w.cfg.batch(ops, seq))
	}
}

// beat sends a heartbeat, if there is somewhere to send it. It reports whether a full sync is asked for.
func (w *Worker) beat(ctx context.Context, push, beats *line) (sync bool) {
	message := w.cfg.alive("HeartbeatMsg")
	if w.cfg.Release == Release039 {
		push.send(ctx, message)
		return false
	}
	if beats.addr == "" {
		return false
	}
	answer, err := beats.ask(ctx, answerIn, message)
	if err != nil {
		return false
	}
	commands, _ := answer["commands"].([]any)
	for _, c := range commands {
		fields, _ := c.(map[string]any)
		sync = sync || fields["command_type"] == "full_sync"
	}
	return sync
}

// sync sends all keys, and waits until the controller has them. What changes meanwhile stays queued.
func (w *Worker) sync(ctx context.Context, push, reply *line) {
	keys := w.snapshot()
	id := fmt.Sprintf("%s_0_%.8s", w.cfg.Instance, rand.Text())
	batches := (len(keys) + keysPerBatch - 1) / keysPerBatch
	answer, err := reply.ask(ctx, answerIn, w.cfg.syncStart(id, len(keys), batches))
	if err != nil || answer["accepted"] != true {
		return // the next heartbeat asks again
	}
	missing := make([]int, batches)
	for i := range missing {
		missing[i] = i
	}
	for {
		var frames [][]byte
		for _, n := range missing {
			frames = append(frames, w.cfg.syncBatch(id, n, keys[n*keysPerBatch:min(len(keys), (n+1)*keysPerBatch)]))
		}
		if push.send(ctx, append(frames, w.cfg.syncEnd(id, len(keys)))...) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.cfg.Status):
		}
		status, err := reply.ask(ctx, answerIn, w.cfg.syncStatus(id))
		if err != nil || status["can_exit_freeze"] == true {
			return
		}
		missing = missing[:0]
		list, _ := status["missing_batches"].([]any)
		for _, v := range list {
			if n, ok := v.(uint64); ok && n < uint64(batches) {
				missing = append(missing, int(n))
			}
		}
	}
}

// sayGoodbye deregisters a worker that leaves, and does not wait for a controller that is gone.
func (w *Worker) sayGoodbye(push *line) {
	if !w.leaves() {
		return
	}
	ctx, end := context.WithTimeout(context.Background(), time.Second)
	defer end()
	push.send(ctx, w.cfg.deregister())
}
