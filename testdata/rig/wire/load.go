package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Client sends one request after the other, on one connection while it lasts. Not safe for concurrent use.
type Client struct {
	Addr string
	conn *Conn
}

// Answer is what a request came to. Err is nil if the answer came whole.
type Answer struct {
	Head
	Body []byte // without KeepBody of Do: nil
	Took time.Duration
	Err  error
}

// String is the answer in a few words.
func (a Answer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("%d (%v)", a.Status, a.Err)
	}
	return fmt.Sprintf("%d %.100s", a.Status, strings.TrimSpace(string(a.Body)))
}

// Do sends the request's bytes and reads the answer. It never sends twice: a connection that the server has closed
// without saying so is an error.
func (c *Client) Do(request []byte, keepBody bool) (a Answer) {
	began := time.Now()
	defer func() {
		a.Took = time.Since(began)
		if c.conn != nil && (a.Err != nil || a.Close) {
			c.Close()
		}
	}()
	if c.conn == nil {
		c.conn, a.Err = Dial(c.Addr)
		if a.Err != nil {
			return a
		}
	}
	c.conn.SetWriteDeadline(began.Add(Timeout))
	_, werr := c.conn.Write(request)
	a = c.conn.ReadAnswer(keepBody)
	switch {
	case werr == nil:
	case a.Status == 0: // there is no head
		a.Err = werr
	default: // an early refusal is read even if the write failed
		a.Close = true
	}
	return a
}

// Close drops the connection.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Once sends one request on a connection of its own and keeps the body.
func Once(addr string, request []byte) Answer {
	c := Client{Addr: addr}
	defer c.Close()
	return c.Do(request, true)
}

// Closed keeps conns clients busy for d: each sends as soon as it has its answer. shoot is told the client's number.
func Closed(ctx context.Context, addr string, conns int, d time.Duration, shoot func(c *Client, i int)) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	for i := range conns {
		all.Go(func() {
			c := &Client{Addr: addr}
			defer c.Close()
			for ctx.Err() == nil {
				shoot(c, i)
			}
		})
	}
	all.Wait()
}

// Open sends rate requests a second for d, whether or not answers come, over at most conns connections. shoot is told
// the request's number and when it was due: latency counts from there, or a slow server would slow down its own
// judge.
func Open(ctx context.Context, addr string, rate float64, conns int, d time.Duration,
	shoot func(c *Client, i int, due time.Time)) {
	type ticket struct {
		i   int
		due time.Time
	}
	n := int(rate * d.Seconds())
	tickets := make(chan ticket, n)
	var all sync.WaitGroup
	for range conns {
		all.Go(func() {
			c := &Client{Addr: addr}
			defer c.Close()
			for t := range tickets {
				shoot(c, t.i, t.due)
			}
		})
	}
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(float64(i) / rate * 1e9))
		if wait := time.Until(due); wait > 0 {
			// time.Sleep rounds up to the milliseconds of epoll_wait.
			ts := syscall.NsecToTimespec(int64(wait))
			syscall.Nanosleep(&ts, nil)
		}
		if ctx.Err() != nil {
			break
		}
		tickets <- ticket{i, due}
	}
	close(tickets)
	all.Wait()
}

// Quantile returns the q-quantile, 0 to 1, and sorts v. Of nothing it is 0.
func Quantile[T time.Duration | float64](v []T, q float64) T {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
