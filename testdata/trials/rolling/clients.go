package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
)

const (
	model = "sim"

	// skipped is the part of the load before the first request, in which its number of sessions grows, and turnTime about
	// how long an answer takes.
	skipped  = 150 * time.Second
	turnTime = 1500 * time.Millisecond

	// patience is how long a client waits for the end of an answer.
	patience = time.Minute
)

// clients play the chats.
type clients struct {
	url    string
	client *http.Client
	began  time.Time

	mu     sync.Mutex // guards all below
	seen   []answer
	failed int
}

// answer is one that a client got.
type answer struct {
	asked          time.Duration // since the load began
	ttft           float64       // in seconds
	prompt, cached int
}

// side is what clients saw of the requests of some time.
type side struct {
	Requests int     `json:"requests"`
	Hits     float64 `json:"hit_rate"`
	P50      float64 `json:"ttft_p50"`
	P90      float64 `json:"ttft_p90"`
}

// side returns what clients saw of the requests that were sent between two instants.
func (c *clients) side(from, until time.Duration) (s side) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ttft []float64
	prompt, cached := 0, 0
	for _, a := range c.seen {
		if a.asked >= from && a.asked < until {
			ttft = append(ttft, a.ttft)
			prompt, cached = prompt+a.prompt, cached+a.cached
		}
	}
	if len(ttft) == 0 {
		return s
	}
	return side{Requests: len(ttft), Hits: float64(cached) / float64(max(1, prompt)), P50: trial.Quantile(ttft, .5),
		P90: trial.Quantile(ttft, .9)}
}

// play plays a session's turns one after the other, from the first one that is due after the part that is skipped.
func (c *clients) play(ctx context.Context, chat *traffic.Chat) {
	at, answers := chat.Start-skipped, map[uint64]string{}
	begun := false
	for i := range chat.Turns {
		turn := &chat.Turns[i]
		at += turn.Gap
		if at < 0 {
			at += turnTime
			continue
		}
		due := c.began.Add(at)
		if begun {
			due = time.Now().Add(turn.Gap)
		}
		begun = true
		if due.Sub(c.began) > over || !await(ctx, due) {
			return
		}
		text, err := c.send(ctx, prompt(turn, answers), turn.Output)
		if err != nil {
			if ctx.Err() == nil {
				fmt.Println(strconv.Quote(err.Error()))
			}
			c.mu.Lock()
			c.failed++
			c.mu.Unlock()
			return
		}
		answers[turn.Answer] = text
	}
}

// prompt returns a turn's prompt, with the answers that came before it.
func prompt(turn *traffic.Turn, answers map[uint64]string) (text []byte) {
	for k := range turn.Parts {
		if came, is := answers[turn.Parts[k].ID]; is {
			text = append(text, came...)
		} else {
			text = traffic.AppendText(text, turn.Parts[k:k+1])
		}
	}
	return text
}

// event is what is read of a stream.
type event struct {
	Choices []struct{ Text string }
	Usage   *struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// send sends a request and returns its answer's text.
func (c *clients) send(ctx context.Context, prompt []byte, tokens int) (string, error) {
	body, err := json.Marshal(map[string]any{"model": model, "prompt": string(prompt), "max_tokens": tokens,
		"ignore_eos": true, "stream": true, "stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	asked := time.Now()
	resp, err := c.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return "", fmt.Errorf("%s: %s", resp.Status, said)
	}
	return c.read(resp.Body, asked)
}

// read reads a stream to its end.
func (c *clients) read(from io.Reader, asked time.Time) (string, error) {
	var text strings.Builder
	var ttft time.Duration
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "[DONE]" {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return "", err
		}
		for _, choice := range e.Choices {
			if choice.Text != "" {
				ttft = cmp.Or(ttft, time.Since(asked))
				text.WriteString(choice.Text)
			}
		}
		if e.Usage == nil {
			continue
		}
		c.mu.Lock()
		c.seen = append(c.seen, answer{asked: asked.Sub(c.began), ttft: ttft.Seconds(), prompt: e.Usage.Prompt,
			cached: e.Usage.Details.Cached})
		c.mu.Unlock()
		return text.String(), nil
	}
	return "", fmt.Errorf("the stream ended early: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

// metric returns the value of a line of metrics, 0 if there is none.
func metric(page, name string) float64 {
	_, rest, _ := strings.Cut(page, name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseFloat(value, 64)
	return n
}
