package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// memory opens 1,000 and then 9,000 streams through a fresh proxy and looks at its resident memory. Two descriptors a
// stream: 9,000 is what a limit of 20,000 lets through.
func memory(b *bench, running *rig.Proc) error {
	p, err := b.start(running.Name)
	if err != nil {
		return err
	}
	defer p.Stop()
	wire.Closed(b.ctx, p.Addr, busy, b.turn(), func(c *wire.Client, _ int) { ask(c, sized(1<<10, chatPath, false)) })
	before := p.RSS()
	request := sized(1<<10, chatPath+"?chunks=3&gap=120000", true)
	var open []*wire.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	errors := 0
	for _, n := range []int{1000, 9000} {
		got := openStreams(p.Addr, request, n-len(open))
		errors += n - len(open) - len(got)
		open = append(open, got...)
		time.Sleep(b.turn())
		if len(open) == 0 {
			return fmt.Errorf("no stream was opened")
		}
		b.note(fmt.Sprintf("memory/%d-streams", n), p.Name, float64(p.RSS()-before)/1024/float64(len(open)))
	}
	b.note("memory/9000-total", p.Name, float64(p.RSS())/(1<<20))
	b.note("memory/9000-errors", p.Name, float64(errors))
	return nil
}

// idleConnections opens connections that ask once and then wait, as clients' pools do, some hundred a second. It looks
// at the proxy's resident memory when all have waited for a while, over what it was at half of them: by then there are
// buffers enough for those that have not waited long. It counts what the garbage collector has not taken yet, too.
func idleConnections(b *bench, running *rig.Proc) error {
	const conns, each, pause = 6000, 100, 125 * time.Millisecond
	p, err := b.start(running.Name)
	if err != nil {
		return err
	}
	defer p.Stop()
	next := renew(sized(1<<10, chatPath, false))
	before := int64(0)
	silence := 3 * time.Second
	if p.Name == "warmpath" || p.Name == "beside" {
		silence += 30 * time.Second // after which it holds less: see listen.Conn.Await
	}
	for i := range conns {
		if i%each == 0 {
			time.Sleep(pause)
		}
		if i == conns/2 {
			time.Sleep(silence)
			before = p.RSS()
		}
		c := &wire.Client{Addr: p.Addr}
		if err := ask(c, next()); err != nil {
			return err
		}
		defer c.Close()
	}
	time.Sleep(silence + 2*time.Second)
	b.note("memory/idle-connection", p.Name, float64(p.RSS()-before)/1024/(conns-conns/2))
	return nil
}

// openStreams opens n streams, 100 at a time, and returns those that gave their first event.
func openStreams(addr string, request []byte, n int) (open []*wire.Conn) {
	var mu sync.Mutex // guards open
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			next := renew(request)
			for range todo {
				c, err := openStream(addr, next())
				if err != nil {
					continue
				}
				mu.Lock()
				open = append(open, c)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return open
}

// openStream reads up to the first event.
func openStream(addr string, request []byte) (*wire.Conn, error) {
	c, err := wire.Dial(addr)
	if err != nil {
		return nil, err
	}
	if _, err = c.Write(request); err == nil {
		var h wire.Head
		h, err = c.ReadHead()
		if err == nil && h.Status != 200 {
			err = fmt.Errorf("status %d", h.Status)
		}
	}
	if err == nil {
		_, err = c.R.Peek(20)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// never is told of a request that the worker worked on to its end, in ms: what gone waits for.
const never = 1000

// gone closes clients' connections and asks the worker when it learnt of it.
func gone(when string) func(*bench, *rig.Proc) error {
	path := fmt.Sprintf("%s?hold=%d", chatPath, never)
	if when == "stream" {
		path = fmt.Sprintf("%s?chunks=2&gap=%d", chatPath, never)
	}
	return func(b *bench, p *rig.Proc) error {
		n := 100
		if b.quick {
			n = 40
		}
		left := map[string]int64{}
		for range n {
			mark := fmt.Sprintf("%s-%s-%d", p.Name, when, time.Now().UnixNano())
			c, err := wire.Dial(p.Addr)
			if err != nil {
				return err
			}
			c.Write(sized(1<<10, path+"&mark="+mark, when == "stream"))
			if when == "stream" {
				if _, err := c.ReadHead(); err != nil {
					return err
				}
			}
			time.Sleep(8 * time.Millisecond) // the request is at the worker
			left[mark] = time.Now().UnixNano()
			c.Close()
		}
		time.Sleep(never * time.Millisecond)
		a := wire.Once(b.worker.Addr, wire.Get("/gone"))
		told := map[string]int64{}
		if err := json.Unmarshal(a.Body, &told); err != nil {
			return err
		}
		var took []float64
		for mark, at := range left {
			t, came := told[mark]
			switch {
			case !came: // the client was faster than its request
			case t == 0:
				took = append(took, never)
			default:
				took = append(took, min(never, max(0, float64(t-at)/1e6)))
			}
		}
		b.note("gone/"+when+"-p50", p.Name, wire.Quantile(took, .5))
		b.note("gone/"+when+"-p99", p.Name, wire.Quantile(took, .99))
		b.note("gone/"+when+"-max", p.Name, wire.Quantile(took, 1))
		return nil
	}
}
