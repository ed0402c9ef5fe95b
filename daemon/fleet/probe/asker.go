package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	maxMetrics = 8 << 20 // a page is about 60 KB
	maxModels  = 4 << 20
	maxHealth  = 1 << 10
	maxSources = 1 << 20 // 220 bytes an engine

	countWait = time.Second / 2 // for each of two questions: a worker that comes up is not kept from its work for longer
)

// answersHeld bounds what the answers of all workers hold while they come, beside freeAnswer each.
var answersHeld = quota.New(64 << 20)

const freeAnswer = 256 << 10

// asker sends the questions by one Config. It is never changed, only replaced.
type asker struct {
	Config
	pace     *rate.Limiter
	fresh    *http.Client  // Client, but each request has a connection of its own
	replaced chan struct{} // closed when another asker takes its place: a loop that sleeps by the old interval wakes up
}

func newAsker(c Config, pace *rate.Limiter) *asker {
	c = c.withDefaults()
	return &asker{Config: c, pace: pace, fresh: withoutKeepAlive(c.Client), replaced: make(chan struct{})}
}

// verdict is the result of a health check.
type verdict uint8

const (
	healthy   verdict = iota
	silent            // no answer in time
	ill               // an answer of 500 or more
	dead              // nothing listens
	unchecked         // this process has no file descriptor left: nothing is known of the worker
)

// health asks /health on a new connection, with keep on one that serves the next question too. Any answer below 500 is
// a good one: a server without that path is not dead.
func (a *asker) health(ctx context.Context, base string, keep bool) (verdict, string) {
	q := question{client: a.fresh, url: base + "/health", wait: a.HealthTimeout, limit: maxHealth}
	if keep {
		q.client = a.Client
	}
	status, _, err := a.get(ctx, q)
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return unchecked, err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return dead, "/health: " + err.Error()
	case err != nil:
		return silent, "/health: " + err.Error()
	case status >= 500:
		return ill, fmt.Sprintf("/health answers %d", status)
	}
	return healthy, ""
}

// models requests the list of a worker's models, and returns their ids and entries.
func (a *asker) models(ctx context.Context, base string) ([]string, []json.RawMessage, error) {
	q := question{client: a.Client, url: base + "/v1/models", wait: a.HealthTimeout, limit: maxModels}
	status, b, err := a.get(ctx, q)
	if err != nil {
		return nil, nil, fmt.Errorf("/v1/models: %w", err)
	}
	if status != http.StatusOK {
		return nil, nil, fmt.Errorf("/v1/models answers %d", status)
	}
	return parseModels(b)
}

func (a *asker) metrics(ctx context.Context, page string, wait time.Duration) (worker.Page, error) {
	status, b, err := a.get(ctx, question{client: a.Client, url: page, wait: wait, limit: maxMetrics + 1})
	if err != nil {
		return worker.Page{}, fmt.Errorf("/metrics: %w", err)
	}
	if status != http.StatusOK {
		return worker.Page{}, fmt.Errorf("/metrics: answers %d", status)
	}
	if len(b) > maxMetrics {
		return worker.Page{}, fmt.Errorf("/metrics: the page is longer than %d MiB", maxMetrics>>20)
	}
	return parseMetrics(b)
}

// engines returns how many data-parallel engines a worker has, 0 if it does not report them. Its metrics have a label
// for each. A worker without metrics of its engines (--disable-log-stats) may still list where each publishes its KV
// events.
func (a *asker) engines(ctx context.Context, base, page string) int {
	wait := min(countWait, a.HealthTimeout)
	if p, err := a.metrics(ctx, page, wait); err == nil && len(p.Engines) > 0 {
		return len(p.Engines)
	}
	q := question{client: a.Client, url: base + "/kv_event_sources", wait: wait, limit: maxSources}
	status, b, err := a.get(ctx, q)
	if err != nil || status != http.StatusOK {
		return 0
	}
	return countSources(b)
}

// paused reports whether a worker says that it is paused: vLLM's RL endpoint /pause stops the engine, and neither
// /health nor /metrics shows it. A worker without the path is not.
func (a *asker) paused(ctx context.Context, base string) bool {
	q := question{client: a.Client, url: base + "/is_paused", wait: min(countWait, a.HealthTimeout), limit: maxHealth}
	status, b, err := a.get(ctx, q)
	var answer struct {
		Is bool `json:"is_paused"`
	}
	return err == nil && status == http.StatusOK && json.Unmarshal(b, &answer) == nil && answer.Is
}

// weights returns the version of its weights that a worker names, 0 if it names none, and whether it may name one
// later: vLLM's is null until a trainer has named the first. vLLM has the path in its development mode alone
// (entrypoints/serve/dev).
func (a *asker) weights(ctx context.Context, base string) (v worker.Weights, later bool) {
	q := question{client: a.Client, url: base + "/weight_info", wait: min(countWait, a.HealthTimeout), limit: maxHealth}
	status, b, err := a.get(ctx, q)
	var answer map[string]*string
	if err != nil || status != http.StatusOK || json.Unmarshal(b, &answer) != nil {
		return 0, err != nil
	}
	said, names := answer["weight_version"]
	if said == nil {
		return 0, names
	}
	return worker.WeightsSaid(*said), true
}

// tokenWait is how long a worker that nobody else uses may take for a token.
const tokenWait = 5 * time.Second

// try asks a worker for a completion of one token, and returns the status of the answer; 0 = none came.
func (a *asker) try(ctx context.Context, base string, p worker.Phase) int {
	body, _ := json.Marshal(map[string]any{"model": p.Try, "prompt": "a", "max_tokens": 1}) // cannot fail
	status, _, _ := a.get(ctx, question{client: a.fresh, url: base + "/v1/completions", body: body, rank: p.Rank,
		wait: tokenWait, limit: maxModels})
	return status
}

// question is a GET, or with a body a POST.
type question struct {
	client *http.Client
	url    string
	body   []byte        // JSON
	rank   string        // X-data-parallel-rank; "" = no header
	wait   time.Duration // deadline of the answer
	limit  int64         // bytes read of it
}

// get returns the answer's status and body. Its error names no URL: that may hold a password.
func (a *asker) get(ctx context.Context, q question) (int, []byte, error) {
	if err := a.pace.Wait(ctx); err != nil {
		return 0, nil, err
	}
	ctx, stop := context.WithTimeout(ctx, q.wait)
	defer stop()
	method := http.MethodGet
	if q.body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, q.url, bytes.NewReader(q.body))
	if err != nil {
		return 0, nil, errors.New("not a URL")
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.rank != "" {
		r.Header.Set("X-Data-Parallel-Rank", q.rank)
	}
	if a.Key != "" {
		r.Header.Set("Authorization", "Bearer "+a.Key)
	}
	answer, err := q.client.Do(r)
	if err != nil {
		return 0, nil, withoutAddress(err, q.wait)
	}
	defer answer.Body.Close()
	share := quota.NewShare(answersHeld, freeAnswer)
	defer share.Drop()
	b, err := share.ReadAll(answer.Body, q.limit)
	if err != nil {
		return 0, nil, withoutAddress(err, q.wait)
	}
	return answer.StatusCode, b, nil
}

// withoutAddress puts an error into words that name no address. wait is the time that the answer had.
func withoutAddress(err error, wait time.Duration) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", wait)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
