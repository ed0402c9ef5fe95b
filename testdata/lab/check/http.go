package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// site is a daemon and what stands behind it.
type site struct {
	rule    *rule
	workers int
	each    []string // further lines of each worker
	sim     vllmsim.Config
	server  string        // further lines of [server]
	pool    string        // of [[pools]]
	worker  string        // and of each [[pools.workers]]
	until   time.Duration // simulated, from the load's beginning: no turn begins later; 0 = all do
	keys    *keys         // of the clients; nil = there are none
}

// overHTTP sends the load to a daemon with simulated workers, and adds to s what its clients saw, in simulated time.
func overHTTP(ctx context.Context, s *sums, at site, load traffic.Load) error {
	return served(ctx, at, func(url, _ string, _ vllmsim.Fleet) error {
		cl := clients{url: url, began: time.Now().Add(2 * time.Second), keys: at.keys,
			speed: max(1, at.sim.Speed), until: cmp.Or(at.until, 1000*time.Hour)}
		for i := range load.Chats {
			cl.chats.Go(func() { cl.play(ctx, &load.Chats[i]) })
		}
		cl.chats.Wait()
		if len(cl.seen.ttft) == 0 {
			cl.errs = append(cl.errs, errors.New("no request was answered"))
		}
		s.add(&cl.seen)
		return errors.Join(cl.errs...)
	})
}

// served starts a daemon with simulated workers, and calls play when it is ready.
func served(ctx context.Context, at site, play func(url, admin string, fleet vllmsim.Fleet) error) error {
	fleet, err := vllmsim.StartFleet("127.0.0.1:0", at.workers, at.sim)
	if err != nil {
		return err
	}
	defer fleet.Close()
	var text strings.Builder
	fmt.Fprintf(&text, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nlog_level = \"error\"\n"+
		"%s%s%s[[pools]]\nname = \"p\"\nstrategy = %q\n%s", at.server, at.keys.tables(), at.rule.table(), at.rule.name,
		at.pool)
	for i, u := range fleet.URLs() {
		fmt.Fprintf(&text, "[[pools.workers]]\nid = \"w%d\"\nurl = %q\n%s", i, u, at.worker)
		if i < len(at.each) {
			text.WriteString(at.each[i])
		}
	}
	c, err := conf.Parse([]byte(text.String()), "labcheck.toml")
	if err != nil {
		return err
	}
	d, err := daemon.New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer d.Close()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() { stop(); <-ended }()
	url := "http://" + d.Addr()
	if err := ready(ctx, url); err != nil {
		return err
	}
	return play(url, "http://"+d.AdminAddr(), fleet)
}

// clients play the chats.
type clients struct {
	url   string
	began time.Time
	speed float64 // simulated seconds in a second
	until time.Duration
	keys  *keys
	chats sync.WaitGroup
	// check is called with each whole answer, and with the bytes that it lacks. Nil = nobody asks.
	check func(h http.Header, last event, end string, lacks int)

	mu   sync.Mutex // guards all below
	seen sums
	errs []error
}

// ready waits until the daemon at url serves.
func ready(ctx context.Context, url string) error {
	for range 100 {
		resp, err := http.Get(url + "/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the daemon is not ready within ten seconds")
}

// real returns how long the simulated time d takes.
func (c *clients) real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.speed) }

// play plays one chat. Each turn begins when those before it have ended.
func (c *clients) play(ctx context.Context, chat *traffic.Chat) {
	if chat.Start > c.until {
		return
	}
	time.Sleep(time.Until(c.began.Add(c.real(chat.Start))))
	var turns sync.WaitGroup
	talk := talk{chat: chat, answers: map[uint64]string{}}
	for range chat.Turns {
		talk.ended = append(talk.ended, make(chan struct{}))
	}
	for i := range chat.Turns {
		turns.Go(func() {
			defer close(talk.ended[i])
			c.take(ctx, &talk, i)
		})
	}
	turns.Wait()
}

// talk is a chat under way.
type talk struct {
	chat  *traffic.Chat
	ended []chan struct{} // by turn

	mu      sync.Mutex // guards answers
	answers map[uint64]string
}

// prompt returns the prompt of a turn. What it repeats has ended.
func (t *talk) prompt(turn *traffic.Turn) (prompt []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range turn.Parts {
		if p := turn.Parts[k]; p.Answer {
			prompt = append(prompt, t.answers[p.ID]...)
		} else {
			prompt = traffic.AppendText(prompt, turn.Parts[k:k+1])
		}
	}
	return prompt
}

// take plays a turn, unless its time has not come when the load is over.
func (c *clients) take(ctx context.Context, t *talk, number int) {
	turn := &t.chat.Turns[number]
	for _, before := range turn.After {
		<-t.ended[before]
	}
	time.Sleep(c.real(turn.Gap))
	if time.Since(c.began) > c.real(c.until) {
		return
	}
	text, err := c.send(ctx, t, turn)
	switch {
	case errors.Is(err, errRefused) && c.keys != nil:
		c.keys.refused(t.chat.Key)
		return
	case errors.Is(err, context.DeadlineExceeded) && c.keys != nil:
		c.keys.gaveUp(t.chat.Key)
		return
	}
	if err != nil {
		c.mu.Lock()
		c.errs = append(c.errs, err)
		c.mu.Unlock()
		return
	}
	t.mu.Lock()
	t.answers[turn.Answer] = text
	t.mu.Unlock()
}

// event is what is read of a stream.
type event struct {
	Choices []struct {
		Text string `json:"text"`
		End  string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Fingerprint string `json:"system_fingerprint"`

	weights string // of the comment that ends a stream of several versions; no event then
}

// patience is how long a client waits for the end of an answer.
const patience = 5 * time.Minute

// errRefused is a request that the daemon turned away for want of room.
var errRefused = errors.New("status 429")

// send sends the request of a turn, and returns the answer's text.
func (c *clients) send(ctx context.Context, t *talk, turn *traffic.Turn) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "m", "prompt": string(t.prompt(turn)), "max_tokens": turn.Output,
		"ignore_eos": true, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", c.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	c.keys.sign(req, &t.chat.Caller)
	for name, value := range t.chat.Headers {
		req.Header.Set(name, value)
	}
	if session := cmp.Or(turn.Session, t.chat.Session); session != 0 {
		req.Header.Set("X-Session-Id", strconv.FormatUint(session, 36))
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		return "", errRefused
	}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, said)
	}
	var last event
	end := ""
	text, err := c.read(resp.Body, t.chat.Key, began, func(e event) {
		if e.weights != "" {
			resp.Header.Set("X-Warmpath-Weights", e.weights)
			return
		}
		last = e
		for _, choice := range e.Choices {
			end = cmp.Or(choice.End, end)
		}
	})
	if err == nil && c.check != nil {
		c.check(resp.Header, last, end, turn.Output*engine.BytesPerToken-len(text))
	}
	return text, err
}

// read reads a stream of a key's to its end, and calls each with its events.
func (c *clients) read(from io.Reader, key string, began time.Time, each func(event)) (string, error) {
	var text strings.Builder
	var first time.Duration
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if v, is := strings.CutPrefix(lines.Text(), ": X-Warmpath-Weights: "); is {
			each(event{weights: v})
		}
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "[DONE]" {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return "", err
		}
		each(e)
		for _, choice := range e.Choices {
			if first == 0 && choice.Text != "" {
				first = time.Since(began)
			}
			text.WriteString(choice.Text)
		}
		if e.Usage != nil {
			one := sums{ttft: []float64{first.Seconds() * c.speed}, prompt: e.Usage.Prompt, cached: e.Usage.Details.Cached}
			c.keys.answered(key, &one)
			c.mu.Lock()
			c.seen.add(&one)
			c.mu.Unlock()
		}
	}
	return text.String(), lines.Err()
}
