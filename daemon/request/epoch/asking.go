package epoch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Asking sends the router's own questions to a pool's workers: it gets the token ids of prompts. It outlives epochs,
// implements [tokens.Fleet], and is safe for concurrent use.
type Asking struct {
	*tokens.Source
	pool    *route.Pool
	clients *Clients
	key     atomic.Pointer[string]

	mu       sync.Mutex // guards all below
	adapters map[string]bool
	read     time.Time // when the workers' entries were
}

// Asked has the parts that NewAsking needs.
type Asked struct {
	Pool    *route.Pool
	Clients *Clients
	Log     *slog.Logger
	Meter   tokens.Meter
}

// AskConfig bounds what an Asking may spend.
type AskConfig = tokens.Config

// NewAsking makes an Asking. Configure it before its first question.
func NewAsking(c Asked) *Asking {
	a := &Asking{pool: c.Pool, clients: c.Clients}
	a.Source = tokens.New(tokens.Parts{Pool: c.Pool.Name, Log: c.Log, Meter: c.Meter, Fleet: a})
	return a
}

// Configure sets the workers' API key, "" if they ask for none, and the limits.
func (a *Asking) Configure(key string, c AskConfig) {
	a.key.Store(&key)
	a.Source.Configure(c)
}

// Askable implements tokens.Fleet.
func (a *Asking) Askable(of tokens.Group, now time.Time, out []tokens.Target) []tokens.Target {
	q := worker.Query{Model: of.Model, Fence: of.Fence, At: now, Again: true}
	rows, workers, _ := a.pool.Workers.Snapshot(q, nil, nil)
	for i, w := range workers {
		out = append(out, tokens.Target{ID: w.ID(), URL: w.URL(), InFlight: int(rows[i].InFlight)})
	}
	return out
}

var (
	// ErrRemoved is why a worker cannot be asked that is no longer one of the pool's.
	ErrRemoved = errors.New("epoch: the worker has been removed")
	errLong    = errors.New("epoch: the worker's answer is longer than was asked for")
)

// Post implements tokens.Fleet. It is a GET without a body.
func (a *Asking) Post(ctx context.Context, to tokens.Target, path string, body []byte, limit int) (int, []byte, error) {
	ask := a.To(to.URL)
	if ask == nil {
		return 0, nil, ErrRemoved
	}
	return ask(ctx, path, body, limit)
}

// Ask posts a body to a path of one worker, or without one gets what is there, and returns the answer, of at most limit
// bytes. A longer one is an error.
type Ask func(ctx context.Context, path string, body []byte, limit int) (status int, answer []byte, err error)

// To returns the Ask of the worker at a URL, nil if it has been removed. It may be called after that too.
func (a *Asking) To(url string) Ask {
	client := a.clients.Get(url)
	if client == nil {
		return nil
	}
	return func(ctx context.Context, path string, body []byte, limit int) (int, []byte, error) {
		header, method := []upstream.Field{{Name: "Accept-Encoding", Value: "identity"}}, "GET"
		if body != nil {
			header, method = append(header, upstream.Field{Name: "Content-Type", Value: "application/json"}), "POST"
		}
		if key := *a.key.Load(); key != "" {
			header = append(header, upstream.Field{Name: "Authorization", Value: "Bearer " + key})
		}
		resp, err := client.Do(ctx, &upstream.Request{Method: method, Path: path, Header: header, Body: body})
		if err != nil {
			return 0, nil, err
		}
		defer resp.Close()
		text, err := ReadAnswer(resp, int64(limit)+1)
		switch {
		case err != nil:
			return 0, nil, err
		case len(text) > limit:
			return 0, nil, errLong
		}
		return resp.Status, text, nil
	}
}

// answersHeld bounds the memory of workers' answers while they are read, for all pools together and beyond freeAnswer
// of each answer. A worker may send its answer slowly, and each pool reads up to 32 at a time.
var answersHeld = quota.New(64 << 20)

const freeAnswer = 64 << 10

// ReadAnswer reads a worker's answer to a question of the router's own, to its end or its first limit bytes.
func ReadAnswer(r io.Reader, limit int64) ([]byte, error) {
	share := quota.NewShare(answersHeld, freeAnswer)
	defer share.Drop()
	return share.ReadAll(r, limit)
}

// Get asks a worker for what is at a path, and returns its answer, of at most limit bytes. A longer one is an error.
func (a *Asking) Get(ctx context.Context, url, path string, limit int) (int, []byte, error) {
	return a.Post(ctx, tokens.Target{URL: url}, path, nil, limit)
}

// Order posts an operator's order to a worker and returns its answer, of at most limit bytes. A longer one is an error.
func (a *Asking) Order(ctx context.Context, url, path string, body []byte, limit int) (int, []byte, error) {
	if body == nil { // else it would be a GET
		body = []byte{}
	}
	return a.Post(ctx, tokens.Target{URL: url}, path, body, limit)
}

// adaptersEvery is how long Adapter uses the models that it has read. The prober reads a listing every 10 s.
const adaptersEvery = time.Second

// Adapter returns the model's name if it is a LoRA adapter, else "". vLLM lists adapters like models, with the name of
// the model that they are for as their parent.
func (a *Asking) Adapter(model string, now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.read) >= adaptersEvery {
		a.read = now
		a.adapters = map[string]bool{}
		for _, raw := range a.pool.Workers.Models(nil) {
			var entry struct {
				ID     string  `json:"id"`
				Parent *string `json:"parent"`
			}
			if json.Unmarshal(raw, &entry) == nil && entry.Parent != nil && *entry.Parent != "" {
				a.adapters[entry.ID] = true
			}
		}
	}
	if a.adapters[model] {
		return model
	}
	return ""
}
