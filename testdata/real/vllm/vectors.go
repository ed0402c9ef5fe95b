package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// vector is a line of a recording of one worker's cache, in the order of time: a message of its event stream, or a
// request that it got, with the tokens that it found cached. The first line names the vLLM.
type vector struct {
	VLLM    string   `json:"vllm,omitempty"`
	Seq     *uint64  `json:"seq,omitempty"`
	Payload string   `json:"payload,omitempty"` // hex
	IDs     []uint32 `json:"ids,omitempty"`
	Cached  *int     `json:"cached,omitempty"`
}

// recordCaches plays the traffic once and writes what the first worker published and found.
func (g *stage) recordCaches(ctx context.Context, folder string) error {
	began := len(g.listener.of(g.workers[0].id))
	all, err := g.play(ctx, &situation{}, g.strategies[0], false)
	if err != nil {
		return err
	}
	version := g.workers[0].client.send(ctx, "GET", "/version", nil, nil).text("version")
	lines := []vector{{VLLM: version}}
	batches := g.listener.of(g.workers[0].id)[began:]
	for _, p := range all {
		if p.worker != g.workers[0].id {
			continue
		}
		for len(batches) > 0 && batches[0].Made < seconds(p.sent) {
			lines = append(lines, vector{Seq: &batches[0].Seq, Payload: batches[0].Payload})
			batches = batches[1:]
		}
		ids, err := g.workers[0].ids(ctx, p.messages)
		if err != nil {
			return err
		}
		lines = append(lines, vector{IDs: ids, Cached: &p.cached})
	}
	file := filepath.Join(folder, "caches-"+version+".jsonl")
	if err := writeLines(file, lines); err != nil {
		return err
	}
	fmt.Println("recorded", file)
	return nil
}

func writeLines(file string, lines []vector) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriter(f)
	e := json.NewEncoder(b)
	for i := range lines {
		if err := e.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return b.Flush()
}
