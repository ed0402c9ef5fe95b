package operator

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// effect is what an order does to a worker, as far as routing goes.
type effect uint8

const (
	nothing effect = iota
	stops          // the engine serves no request until another order
	wakes          // it serves requests again
	empties        // its KV cache is invalid now
)

// orders are the paths that may be sent to all workers of a pool. They are vLLM's for reinforcement learning and for
// sleep. None runs code of the caller's, as /collective_rpc does.
var orders = map[string]effect{"/pause": stops, "/resume": wakes, "/sleep": stops, "/wake_up": wakes,
	"/reset_prefix_cache": empties, "/reset_mm_cache": nothing, "/reset_encoder_cache": nothing,
	"/init_weight_transfer_engine": nothing, "/start_weight_update": nothing, "/update_weights": empties,
	"/finish_weight_update": empties}

// The bounds of orders: the longest time for a worker's answer, its time unless the request sets another, the bytes
// that are read of it, and how many workers are asked at a time.
const (
	maxOrderTime, orderTime = 10 * time.Minute, time.Minute
	maxOrderAnswer          = 64 << 10
	ordersAtOnce            = 64
)

// Ordered is the answer to an order to all workers of a pool.
type Ordered struct {
	Pool    string          `json:"pool"`
	Path    string          `json:"path"`
	OK      bool            `json:"ok"` // each worker has answered with a success
	Workers []WorkerOrdered `json:"workers"`
}

// WorkerOrdered is what one worker has answered.
type WorkerOrdered struct {
	Worker  string  `json:"worker"`
	Status  int     `json:"status,omitempty"` // 0 = it did not answer
	Answer  string  `json:"answer,omitempty"` // its beginning
	Error   string  `json:"error,omitempty"`  // why there is no answer
	Seconds float64 `json:"seconds"`
}

func (w *WorkerOrdered) ok() bool { return w.Status >= 200 && w.Status < 300 }

// order is one path with its query, body and deadline.
type order struct {
	pool   *Pool
	path   string
	effect effect
	body   []byte
	wait   time.Duration
}

// addOrders adds the route that sends an order to each worker of a pool. It needs a token, on loopback too: a fleet
// that is put to sleep serves no client.
func addOrders(app *fiber.App, p Process, token *bearer) {
	app.Post("/api/v1/pools/:pool/each", func(c *fiber.Ctx) error {
		if !token.exists() {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{"error": "workers are ordered with a token only, on " +
				"loopback too; write one of 8 characters or more into a file, name it in server.admin_token_file, and restart"})
		}
		o, err := readOrder(c)
		if err != nil {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
		}
		name := c.Params("pool")
		i := slices.IndexFunc(p.Pools(), func(p *Pool) bool { return p.Name == name })
		if i < 0 {
			return c.Status(fiber.StatusNotFound).JSON(fiber.Map{
				"error": "there is no such pool; /api/v1/pools lists them"})
		}
		o.pool = p.Pools()[i]
		answer := o.send()
		if !answer.OK {
			c.Status(fiber.StatusBadGateway)
		}
		return c.JSON(answer)
	})
}

// readOrder reads ?path=/sleep%3Flevel=1&timeout=1m and the body.
func readOrder(c *fiber.Ctx) (o order, err error) {
	o = order{path: copied(c, "path"), body: bytes.Clone(c.Body()), wait: orderTime}
	path, _, _ := strings.Cut(o.path, "?")
	known := false
	o.effect, known = orders[path]
	if !known || strings.ContainsAny(o.path, " #\r\n") {
		return o, fmt.Errorf("path must be one of these, with its query: %s",
			strings.Join(slices.Sorted(maps.Keys(orders)), " "))
	}
	if q := c.Query("timeout"); q != "" {
		o.wait, err = time.ParseDuration(q)
		if err != nil || o.wait <= 0 || o.wait > maxOrderTime {
			return o, fmt.Errorf("timeout is a time up to %v, as 90s", maxOrderTime)
		}
	}
	return o, nil
}

// send sends the order to each worker, whether it is up or not, and returns all answers.
func (o *order) send() Ordered {
	var to []worker.Stats // one of each process: ranks share theirs
	for _, s := range o.pool.Workers.Stats(time.Now()) {
		if !slices.ContainsFunc(to, func(t worker.Stats) bool { return t.Endpoint == s.Endpoint }) {
			to = append(to, s)
		}
	}
	all := Ordered{Pool: o.pool.Name, Path: o.path, OK: len(to) > 0, Workers: make([]WorkerOrdered, len(to))}
	ctx, stop := context.WithTimeout(context.Background(), o.wait)
	defer stop()
	var running sync.WaitGroup
	places := make(chan struct{}, ordersAtOnce)
	for i := range to {
		places <- struct{}{}
		running.Go(func() {
			all.Workers[i] = o.sendTo(ctx, &to[i])
			<-places
		})
	}
	running.Wait()
	for i := range all.Workers {
		all.OK = all.OK && all.Workers[i].ok()
	}
	return all
}

// sendTo sends the order to one worker. If it obeys, the router knows it at once.
func (o *order) sendTo(ctx context.Context, to *worker.Stats) (w WorkerOrdered) {
	began := time.Now()
	status, answer, err := o.pool.Asking.Order(ctx, to.URL, o.path, o.body, maxOrderAnswer)
	w = WorkerOrdered{Worker: to.Endpoint, Status: status, Answer: gate.Cut(string(answer)),
		Seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		w.Error = fmt.Sprintf("no answer within %v", o.wait)
	case err != nil:
		w.Error = gate.Cut(err.Error())
	case !w.ok():
	case o.effect == stops:
		o.pool.Workers.Slept(to.Endpoint, time.Now())
	case o.effect == wakes:
		o.pool.Workers.Woke(to.Endpoint, time.Now())
	case o.effect == empties:
		o.pool.Workers.Emptied(to.Endpoint, time.Now())
	}
	return w
}
