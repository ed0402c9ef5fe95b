package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"
)

// request is a line of the router's access log.
type request struct {
	Path     string
	Status   int
	End      string
	Retries  int
	Identity string
	Parent   string
	NamedBy  string `json:"named_by"`
	Turn     int
	Prompt   int `json:"prompt_tokens"`
	Cached   int `json:"cached_tokens"`
	Output   int `json:"output_tokens"`
}

// readLog returns the whole lines of an access log.
func readLog(file string) (list []request, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var r request
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", file, err, line)
		}
		if r.Path != "" {
			list = append(list, r)
		}
	}
	return list, nil
}

// wanted is how many requests the agent makes: one a turn, and a subagent's two.
func (a *agent) wanted() int {
	if a.child {
		return *turns + 1 + 2
	}
	return *turns + 1
}

// await waits up to 10 s for the lines of the agent, which has ended, behind those before it. It counts apart those of
// WebSockets that were refused.
func (a *agent) await(file string, before int) (asked []request, probes int, err error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		log, err := readLog(file)
		if err != nil {
			return nil, 0, err
		}
		if len(log) >= before+a.wanted()+a.probes || time.Now().After(end) {
			asked = slices.DeleteFunc(log[before:], func(r request) bool { return r.Status == http.StatusUpgradeRequired })
			return asked, len(log) - before - len(asked), nil
		}
	}
}

// answered checks that the agent made the requests of its turns, and that each was answered at once.
func (a *agent) answered(log []request, probes int) (err error) {
	if len(log) != a.wanted() || probes != a.probes {
		err = fmt.Errorf("%d requests and %d WebSockets, want %d and %d", len(log), probes, a.wanted(), a.probes)
	}
	for i, r := range log {
		if r.Status != 200 || r.End != "" || r.Retries != 0 || r.Output == 0 {
			err = errors.Join(err, fmt.Errorf("request %d: %+v", i+1, r))
		}
	}
	return err
}

// told checks that the last answer of the agent's own session stands in what it printed, whole: a worker's token is
// some four letters.
func (a *agent) told(said string, log []request) error {
	answers := regexp.MustCompile(a.final).FindAllStringSubmatch(said, -1)
	if len(answers) == 0 || len(log) == 0 {
		return fmt.Errorf("there is no text in %s", last([]byte(said)))
	}
	text, tokens := answers[len(answers)-1][1], log[len(log)-1].Output
	if len(text) < 3*tokens {
		return fmt.Errorf("%d bytes of text for %d tokens: %s", len(text), tokens, text)
	}
	return nil
}

// sessions returns the requests by session, each in order, and the sessions in the order of their first answers. What
// the router takes for one by its prompts alone is named by nobody.
func sessions(log []request) (names []string, of map[string][]request) {
	of = map[string][]request{}
	for _, r := range log {
		if r.NamedBy == "lineage" {
			r.Identity, r.NamedBy, r.Turn = "", "", 0
		}
		if of[r.Identity] == nil {
			names = append(names, r.Identity)
		}
		of[r.Identity] = append(of[r.Identity], r)
	}
	return names, of
}

// named checks that the router knew the agent's session, and its subagent's with the session that began it.
func (a *agent) named(log []request) (err error) {
	names, of := sessions(log)
	want := 1
	if a.child {
		want = 2
	}
	if len(names) != want {
		return fmt.Errorf("sessions %q, want %d", names, want)
	}
	for i, name := range names {
		parent := ""
		if i > 0 {
			parent = names[0]
		}
		for k, r := range of[name] {
			turn := k + 1
			if a.namedBy == "" {
				turn = 0
			}
			if (name == "") != (a.namedBy == "") || r.NamedBy != a.namedBy || r.Parent != parent || r.Turn != turn {
				err = errors.Join(err, fmt.Errorf("%+v, want turn %d named by %q with parent %q", r, turn, a.namedBy, parent))
			}
		}
	}
	return err
}

// enough is the least part of what one worker alone would find in its cache that several must find.
const enough = .95

// found checks how much of the prompts the workers had in their caches from each session's second turn on. One worker
// alone would find the last prompt and its answer at most.
func found(log []request) error {
	_, of := sessions(log)
	have, alone := 0, 0
	for _, list := range of {
		for i, r := range list {
			if i > 0 {
				have += r.Cached
				alone += min(r.Prompt, list[i-1].Prompt+list[i-1].Output)
			}
		}
	}
	if alone == 0 || float64(have) < enough*float64(alone) {
		return fmt.Errorf("%d of %d tokens found, want %v", have, alone, enough)
	}
	return nil
}
