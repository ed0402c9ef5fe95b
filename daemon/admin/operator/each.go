package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// effect is what an order does to a worker, as far as routing goes.
type effect uint8

const (
	nothing    effect = iota
	holds             // the engine holds its requests and keeps its KV cache
	aborts            // it holds new requests, has ended the others, and its KV cache is invalid
	clears            // it holds them all, its KV cache is invalid, and it computes them again
	sleeps            // it serves nothing, and its KV cache is gone
	wakes             // it serves requests again
	empties           // its KV cache is invalid now
	recomputes        // likewise, and it computes its requests again, which are valid there from then on
)

// orders are the paths that may be sent to all workers of a pool, with what each does by its query and the worker's
// answer. They are those of vLLM (entrypoints/serve/dev) for reinforcement learning, sleep and caches.
// New weights empty no cache by themselves: a trainer that wants that pauses with mode abort or wait, or resets the
// caches. What /collective_rpc does is the trainer's, and not known here.
var orders = map[string]func(q url.Values, answer []byte) effect{
	"/pause":                       pausing,
	"/resume":                      always(wakes),
	"/abort_requests":              always(nothing),
	"/sleep":                       sleeping,
	"/wake_up":                     waking,
	"/reset_prefix_cache":          resetting,
	"/reset_mm_cache":              always(nothing),
	"/reset_encoder_cache":         always(nothing),
	"/init_weight_transfer_engine": always(nothing),
	"/start_weight_update":         always(nothing),
	"/update_weights":              always(nothing),
	"/finish_weight_update":        always(nothing),
	"/update_weight_version":       always(nothing),
	"/collective_rpc":              always(nothing),
}

func always(e effect) func(url.Values, []byte) effect {
	return func(url.Values, []byte) effect { return e }
}

// pausing is the effect of /pause. Each mode clears the cache unless clear_cache is false: keep too, which computes the
// requests that it holds again, though vLLM's own words are that it ignores clear_cache (v1/engine/core.py,
// pause_scheduler and _reset_caches, 0.17 to 0.33).
func pausing(q url.Values, _ []byte) effect {
	switch {
	case isFalse(q.Get("clear_cache")):
		return holds
	case q.Get("mode") == "keep":
		return clears
	}
	return aborts
}

// sleeping is the effect of /sleep: level 0 only stops the engine's scheduler, from 1 on (the default) the KV cache
// goes.
func sleeping(q url.Values, _ []byte) effect {
	if q.Get("level") == "0" {
		return holds
	}
	return sleeps
}

// waking is the effect of /wake_up. With tags it wakes a part, and the next page of metrics shows whether all are
// awake.
func waking(q url.Values, _ []byte) effect {
	if tags := q["tags"]; len(tags) > 0 && !slices.Contains(tags, "scheduling") {
		return nothing
	}
	return wakes
}

// resetting is the effect of /reset_prefix_cache. From 0.32 on its answer says whether it did: it does not while
// requests run, unless reset_running_requests is true.
func resetting(q url.Values, answer []byte) effect {
	var did struct{ Success *bool }
	if json.Unmarshal(answer, &did) == nil && did.Success != nil && !*did.Success {
		return nothing
	}
	if s := q.Get("reset_running_requests"); s != "" && !isFalse(s) {
		return recomputes
	}
	return empties
}

// isFalse reports whether FastAPI reads a parameter as false.
func isFalse(s string) bool {
	return slices.Contains([]string{"0", "false", "off", "no", "n", "f"}, strings.ToLower(s))
}

// The bounds of orders: the longest time for a worker's answers, their time unless the request sets another, the bytes
// that are read of one, the orders of a request, and how many workers are asked at a time.
const (
	maxOrderTime, orderTime = 10 * time.Minute, time.Minute
	maxOrderAnswer          = 64 << 10
	maxOrders               = 8
	ordersAtOnce            = 64
)

// Ordered is the answer to an order to all workers of a pool.
type Ordered struct {
	Pool    string          `json:"pool"`
	Path    string          `json:"path"`
	OK      bool            `json:"ok"` // each worker has answered with a success
	Workers []WorkerOrdered `json:"workers"`
	Outside int             `json:"outside,omitempty"` // workers outside of this router's subset: they did not get it
}

// WorkerOrdered is what one worker has answered.
type WorkerOrdered struct {
	Worker  string  `json:"worker"`
	Path    string  `json:"path,omitempty"`   // of the last call that it got, where there are several
	Status  int     `json:"status,omitempty"` // 0 = it did not answer
	Answer  string  `json:"answer,omitempty"` // its beginning
	Error   string  `json:"error,omitempty"`  // why there is no answer
	Seconds float64 `json:"seconds"`
}

func (w *WorkerOrdered) ok() bool { return w.Status >= 200 && w.Status < 300 }

// order is one path with its query, body and deadline.
type order struct {
	pool    *readiness.Pool
	path    string
	query   url.Values
	effect  func(q url.Values, answer []byte) effect
	body    []byte
	wait    time.Duration
	weights worker.Weights // that the workers have afterwards; 0 = not said
	down    float64        // the share of workers that have the order at a time; 0 = all
	most    int            // and the number
}

// addOrders adds the route that sends an order to each worker of a pool. It needs a token, on loopback too: a fleet
// that is put to sleep serves no client.
func addOrders(app *fiber.App, p Process, token *bearer) {
	app.Post("/api/v1/pools/:pool/each", func(c *fiber.Ctx) error {
		if !token.exists() {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{"error": "workers are ordered with a token only, on " +
				"loopback too; write one of 8 characters or more into a file, name it in server.admin_token_file, and restart"})
		}
		o, err := readOrders(c)
		if err != nil {
			return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"error": err.Error()})
		}
		name, pools := c.Params("pool"), p.Pools()
		i := slices.IndexFunc(pools, func(p *readiness.Pool) bool { return p.Name == name })
		if i < 0 {
			return c.Status(fiber.StatusNotFound).JSON(fiber.Map{
				"error": "there is no such pool; /api/v1/pools lists them"})
		}
		answer := send(pools[i], o)
		if !answer.OK {
			c.Status(fiber.StatusBadGateway)
		}
		return c.JSON(answer)
	})
}

// readOrders reads an order for each path, which a worker gets one after the other.
func readOrders(c *fiber.Ctx) (all []order, err error) {
	for _, path := range c.Context().QueryArgs().PeekMulti("path") {
		o, err := readOrder(c, string(path))
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if len(all) == 0 || len(all) > maxOrders {
		_, err = readOrder(c, "")
	}
	return all, err
}

// readOrder reads ?path=/sleep%3Flevel=1&timeout=1m&at_most_down=0.25&parallel=2 and the body.
func readOrder(c *fiber.Ctx, to string) (o order, err error) {
	o = order{path: to, body: append([]byte{}, c.Body()...), wait: orderTime}
	path, query, _ := strings.Cut(o.path, "?")
	o.query, _ = url.ParseQuery(query) // what it cannot read, the worker cannot either
	known := false
	o.effect, known = orders[path]
	if !known || strings.ContainsAny(o.path, " #\r\n") {
		return o, fmt.Errorf("path must be one of these, with its query: %s",
			strings.Join(slices.Sorted(maps.Keys(orders)), " "))
	}
	o.weights = weightsAfter(path, o.body)
	if text := c.Get(message.HeaderWeights); text != "" {
		o.weights = worker.WeightsNamed(text)
		if o.weights == 0 {
			return o, errors.New(message.HeaderWeights + " must be a whole number: the version of the weights after the call")
		}
	}
	if q := c.Query("timeout"); q != "" {
		o.wait, err = time.ParseDuration(q)
		if err != nil || o.wait <= 0 || o.wait > maxOrderTime {
			return o, fmt.Errorf("timeout is a time up to %v, as 90s", maxOrderTime)
		}
	}
	if q := c.Query("at_most_down"); q != "" {
		o.down, err = strconv.ParseFloat(q, 64)
		if err != nil || !(o.down > 0 && o.down <= 1) {
			return o, errors.New("at_most_down is a share of the workers above 0, up to 1, as 0.25")
		}
	}
	if q := c.Query("parallel"); q != "" {
		o.most, err = strconv.Atoi(q)
		if err != nil || o.most < 1 || o.most > ordersAtOnce {
			return o, fmt.Errorf("parallel is a number of workers up to %d, as 2", ordersAtOnce)
		}
	}
	return o, nil
}

// weightsAfter returns the version of the weights that a call of vLLM's names in its body, 0 if it names none.
func weightsAfter(path string, body []byte) worker.Weights {
	var call struct {
		Finished *string `json:"weight_version"`
		Set      *string `json:"new_version"`
	}
	_ = json.Unmarshal(body, &call) // the worker refuses what is wrong
	switch {
	case path == "/finish_weight_update" && call.Finished != nil:
		return worker.WeightsSaid(*call.Finished)
	case path == "/update_weight_version" && call.Set != nil:
		return worker.WeightsSaid(*call.Set)
	}
	return 0
}

// send sends the orders to each worker, whether it is up or not, and returns all answers. A worker that does not obey
// one gets no more. One that is removed before its turn gets none, and is left out; one that is removed later gets all.
func send(pool *readiness.Pool, all []order) Ordered {
	var to []worker.Stats // one of each process: ranks share theirs
	o := &all[0]
	for _, s := range pool.Workers.Stats(time.Now()) {
		if !slices.ContainsFunc(to, func(t worker.Stats) bool { return t.Endpoint == s.Endpoint }) {
			to = append(to, s)
		}
	}
	answer := Ordered{Pool: pool.Name, Outside: pool.Outside, Workers: make([]WorkerOrdered, len(to))}
	for i := range all {
		all[i].pool = pool
		answer.Path = strings.TrimSpace(answer.Path + " " + all[i].path)
	}
	ctx, stop := context.WithTimeout(context.Background(), o.wait)
	defer stop()
	var running sync.WaitGroup
	places := make(chan struct{}, o.atOnce(len(to)))
	for i := range to {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			answer.Workers[i] = sendTo(ctx, all, &to[i])
		})
	}
	running.Wait()
	answer.Workers = slices.DeleteFunc(answer.Workers, func(w WorkerOrdered) bool { return w.Worker == "" })
	answer.OK = len(answer.Workers) > 0
	for i := range answer.Workers {
		answer.OK = answer.OK && answer.Workers[i].ok()
	}
	return answer
}

// sendTo sends the orders to one worker, and returns its last answer. It returns none if the worker has been removed.
func sendTo(ctx context.Context, all []order, to *worker.Stats) (w WorkerOrdered) {
	began, ask := time.Now(), all[0].pool.Asking.To(to.URL)
	switch {
	case ask == nil:
		return w
	case ctx.Err() != nil:
		w.Worker, w.Error = to.Endpoint, fmt.Sprintf("its turn did not come within %v: it got no call", all[0].wait)
		return w
	}
	for i := range all {
		w = all[i].sendTo(ctx, to, ask)
		if len(all) > 1 {
			w.Path = all[i].path
		}
		if !w.ok() {
			break
		}
	}
	w.Seconds = time.Since(began).Seconds()
	return w
}

// atOnce returns how many of n workers have the order at a time. One has it at least.
func (o *order) atOnce(n int) int {
	n = min(max(1, int(cmp.Or(o.down, 1)*float64(n))), ordersAtOnce)
	if o.most > 0 {
		n = min(n, o.most)
	}
	return n
}

// sendTo sends the order to one worker. If it obeys, the router knows it at once.
func (o *order) sendTo(ctx context.Context, to *worker.Stats, ask epoch.Ask) (w WorkerOrdered) {
	began := time.Now()
	ended := o.pool.Workers.Order(to.Endpoint)
	defer func() { ended(time.Now()) }()
	before := o.effect(o.query, nil)
	pauses := before >= holds && before <= sleeps
	if pauses {
		o.pool.Workers.Paused(to.Endpoint, began) // from now on: mode wait answers when its requests are through
	}
	o.pool.Workers.Updating(to.Endpoint, o.weights)
	status, answer, err := ask(ctx, o.path, o.body, maxOrderAnswer)
	w = WorkerOrdered{Worker: to.Endpoint, Status: status, Answer: gate.Cut(string(answer)),
		Seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		w.Error = fmt.Sprintf("no answer within %v", o.wait)
	case err != nil:
		w.Error = gate.Cut(err.Error())
	case !w.ok() && pauses: // another call that is refused leaves a paused worker as it is
		o.pool.Workers.Woke(to.Endpoint, time.Now())
	case w.ok():
		o.pool.Workers.Updated(to.Endpoint, o.weights, time.Now())
		o.note(o.effect(o.query, answer), to.Endpoint, began, time.Now())
	}
	return w
}

// note has the pool take the effect of the order on a worker, to which it was sent when it began. A pause holds what
// has come since, and the engine computes it afterwards.
func (o *order) note(e effect, id string, began, now time.Time) {
	switch workers := o.pool.Workers; e {
	case aborts:
		workers.Emptied(id, began, now)
	case empties:
		workers.Emptied(id, now, now)
	case clears, recomputes:
		workers.Emptied(id, time.Time{}, now)
	case sleeps:
		workers.Slept(id, now)
	case wakes:
		workers.Woke(id, now)
	}
}
