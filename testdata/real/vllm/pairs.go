package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// pairThreshold is from how many tokens on a prompt goes to the prefiller: fewer than the load's prompts have.
const pairThreshold = 32

// duo is a prefiller and a decoder, two real engines with one connector between them.
type duo struct {
	connector string // nixl, lmcache, or folder: vLLM's ExampleConnector over a folder that both have
	binary    string // of the router
	setup     setup
	ports     []int // prefiller, decoder, router, its admin port, and two for the connector
	p, d      *vllm
	router    *router
	server    *exec.Cmd // of LMCache
}

// checkPairs compares the answers of two engines, of which one computes the prompt, with those of one, for each
// connector.
func checkPairs(ctx context.Context, o options, dir string) error {
	alone := setup{python: o.python, model: o.model, dir: dir, blocks: 256, length: 2048}
	want, err := answersAlone(ctx, alone)
	if err != nil {
		return err
	}
	failed := 0
	for _, name := range o.connectors {
		x := &duo{connector: name, setup: alone}
		err := x.open(ctx, o.binary)
		for _, c := range []struct {
			name string
			run  func(context.Context) (string, error)
		}{
			{"answers", func(ctx context.Context) (string, error) { return x.checkAnswers(ctx, want) }},
			{"client leaves", x.checkLeave},
			{"prefiller killed", x.checkKilled},
			{"prefiller, back", func(ctx context.Context) (string, error) { return x.checkBack(ctx, "p") }},
			{"decoder killed", x.checkDecoderKilled},
			{"decoder, back", func(ctx context.Context) (string, error) { return x.checkBack(ctx, "d") }},
		} {
			if err != nil {
				break
			}
			limit, cancel := context.WithTimeout(ctx, 10*time.Minute)
			figure, fault := c.run(limit)
			cancel()
			if fault != nil {
				failed++
				fmt.Printf("FAIL  %s: %-17s %v\n", name, c.name, fault)
				continue
			}
			fmt.Printf("ok    %s: %-17s %s\n", name, c.name, figure)
		}
		x.close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	return nil
}

// asks are the requests that are compared: all that generate, and those for which a pair has reasons of its own.
func asks() []kind {
	of := func(more object) kind {
		return kind{"/v1/chat/completions", func(text string, n int) object {
			b := chatBody(said("user", text), n, false)
			for name, value := range more {
				b[name] = value
			}
			return b
		}}
	}
	return append(slices.Clone(kinds[:10]), of(object{"logprobs": true, "top_logprobs": 2}), of(object{"min_tokens": 9}),
		of(object{"n": 2, "temperature": 0.7, "seed": 5}), // by one worker
		kind{"/v1/completions", func(text string, n int) object { // too: a pair has ended a decoder's engine
			return object{"model": "tiny", "prompt": []string{text, text + " and more"}, "max_tokens": n, "temperature": 0}
		}})
}

// unsplit is how many of asks, the last ones, no pair may serve whose decoder is told whose KV it reads.
const unsplit = 2

// sayAll sends them all, and returns what each answer says.
func sayAll(ctx context.Context, c *client) (said []string, split int, err error) {
	for i, k := range asks() {
		text := fmt.Sprint(i, " ", strings.Repeat(strings.Join(words, " ")+" ", 8))
		a := c.post(ctx, k.path, k.body(text, 16))
		if err := a.fault(); err != nil {
			return nil, 0, fmt.Errorf("request %d, %s: %w", i, k.path, err)
		}
		var b strings.Builder
		a.each(func(v any) { gatherSaid(&b, v) })
		said = append(said, b.String())
		if a.header.Get("X-Warmpath-Prefiller") == "p" {
			split++
		}
	}
	return said, split, nil
}

// gatherSaid writes the texts of an answer or an event, and the reasons of its end. Where a stream is cut makes no
// difference.
func gatherSaid(b *strings.Builder, v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			gatherSaid(b, e)
		}
	case object:
		// a busy engine sends its last tokens together with the reason
		for _, key := range []string{"text", "content", "delta", "token", "choices", "message", "output", "response",
			"logprobs", "top_logprobs", "finish_reason", "stop_reason"} {
			if s, ok := v[key].(string); ok {
				b.WriteString(s)
			} else {
				gatherSaid(b, v[key])
			}
		}
	}
}

// answersAlone returns what one engine without a connector says.
func answersAlone(ctx context.Context, s setup) ([]string, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	w, err := s.start("alone", ports[0])
	if err != nil {
		return nil, err
	}
	defer w.kill()
	if _, err := w.ready(ctx); err != nil {
		return nil, err
	}
	want, _, err := sayAll(ctx, w.client)
	return want, err
}

// open starts LMCache's server if need be, both engines and the router.
func (x *duo) open(ctx context.Context, binary string) (err error) {
	x.ports, err = freePorts(6)
	if err != nil {
		return err
	}
	if x.connector == "lmcache" {
		x.server, err = x.setup.serveCache(ctx, "lmcache-server", x.ports[4])
		if err != nil {
			return err
		}
	}
	x.p, err = x.start("p")
	if err != nil {
		return err
	}
	x.d, err = x.start("d")
	if err != nil {
		return err
	}
	for _, w := range []*vllm{x.p, x.d} {
		if _, err := w.ready(ctx); err != nil {
			return err
		}
		k := kinds[0] // a first answer compiles for up to a minute
		if err := w.client.post(ctx, k.path, k.body(fresh(1), 1)).fault(); err != nil {
			return err
		}
	}
	x.binary = binary
	x.router, err = x.route(ctx, settings{name: x.connector, port: x.ports[2], admin: x.ports[3]})
	return err
}

// route starts a router in front of the two.
func (x *duo) route(ctx context.Context, s settings) (*router, error) {
	s.workers, s.connector = []*vllm{x.p, x.d}, x.connector
	if !x.names() {
		s.connector = "lmcache" // the prefill, then the request as it came
	}
	r, err := serve(x.binary, x.setup.dir, s)
	if err != nil {
		return nil, err
	}
	return r, r.up(ctx, s.workers)
}

// names reports whether the decoder is told whose KV it reads, and does not find it by the prompt.
func (x *duo) names() bool { return x.connector == "nixl" }

// start starts the prefiller, p, or the decoder, d.
func (x *duo) start(id string) (*vllm, error) {
	i, role := 0, "kv_producer"
	if id == "d" {
		i, role = 1, "kv_consumer"
	}
	s := x.setup
	switch x.connector {
	case "nixl":
		s.transfer = fmt.Sprintf(`{"kv_connector":"NixlConnector","kv_role":%q,"kv_buffer_device":"cpu"}`, role)
		s.env = []string{"VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1", fmt.Sprint("VLLM_NIXL_SIDE_CHANNEL_PORT=", x.ports[4+i]),
			"UCX_TLS=tcp,sm,self", "UCX_NET_DEVICES=lo"}
	case "lmcache":
		s = s.throughCache(x.ports[4])
	case "folder":
		s.transfer = fmt.Sprintf(`{"kv_connector":"ExampleConnector","kv_role":"kv_both","kv_connector_extra_config":`+
			`{"shared_storage_path":%q}}`, filepath.Join(s.dir, "kv"))
	default:
		return nil, fmt.Errorf("no engines are known for connector %q", x.connector)
	}
	return s.start(id, x.ports[i])
}

// serveCache starts an LMCache server on a port, and waits until it listens: an engine that finds none ends or waits
// for long.
func (s setup) serveCache(ctx context.Context, name string, port int, more ...string) (*exec.Cmd, error) {
	http, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"server", "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--http-host", "127.0.0.1",
		"--http-port", fmt.Sprint(http[0]), "--chunk-size", "32", "--l1-size-gb", "1", "--eviction-policy", "LRU",
		"--supported-transfer-mode", "auto"} // engines of the CPU bring and fetch by themselves
	server := exec.Command(filepath.Join(filepath.Dir(s.python), "lmcache"), append(args, more...)...)
	server.Env = append(os.Environ(), "PYTHONHASHSEED=0", "LMCACHE_TRACK_USAGE=false", "TMPDIR="+s.dir)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return nil, err
	}
	return server, awaitCache(ctx, server, port, log.Name())
}

func awaitCache(ctx context.Context, server *exec.Cmd, port int, log string) error {
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			return c.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("lmcache server ended at its start, %w; its log ends with:\n%s", err, tail(log))
		case <-limit.Done():
			return fmt.Errorf("lmcache server does not listen; its log ends with:\n%s", tail(log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// killGroup ends a process that leads its group, and all of the group.
func killGroup(c *exec.Cmd) {
	if c != nil && c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
}

// throughCache is the setup of an engine whose KV goes through the LMCache server on that port.
func (s setup) throughCache(port int) setup {
	s.transfer = fmt.Sprintf(`{"kv_connector":"LMCacheMPConnector","kv_role":"kv_both","kv_connector_extra_config":`+
		`{"lmcache.mp.host":"tcp://127.0.0.1","lmcache.mp.port":%d}}`, port)
	s.env = []string{"PYTHONHASHSEED=0"} // all sides compute the same keys
	return s
}

func (x *duo) close() {
	for _, w := range []*vllm{x.p, x.d} {
		if w != nil {
			w.kill()
		}
	}
	if x.router != nil {
		x.router.kill()
	}
	killGroup(x.server)
}

const (
	fromElsewhere = `vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="external_kv_transfer"`
	computedHere  = `vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"`
)

// checkAnswers: what two engines say is what one says, and the decoder's KV is the prefiller's.
func (x *duo) checkAnswers(ctx context.Context, want []string) (string, error) {
	got, split, err := sayAll(ctx, x.router.client)
	if err != nil {
		return "", err
	}
	for i := range want {
		if got[i] != want[i] {
			return "", fmt.Errorf("request %d: %q; one engine says %q", i, got[i], want[i])
		}
	}
	pair := len(want)
	if x.names() {
		pair -= unsplit
	}
	read, err := x.d.client.sum(ctx, fromElsewhere)
	computed, err2 := x.d.client.sum(ctx, computedHere)
	switch {
	case err != nil || err2 != nil:
		return "", errors.Join(err, err2)
	case split != pair:
		return "", fmt.Errorf("%d of %d were split; want %d", split, len(want), pair)
	case read < 100*float64(pair): // 200 tokens and more a prompt, of which LMCache keeps whole chunks
		return "", fmt.Errorf("the decoder has read %v tokens of KV for %d prompts", read, pair)
	}
	return fmt.Sprintf("%d of %d as one engine's, %d of them split; the decoder read %v tokens of KV and computed %v",
		len(got), len(want), split, read, computed), nil
}

// checkLeave: clients that leave, mostly before or between the legs, leave no memory behind at the prefiller.
func (x *duo) checkLeave(ctx context.Context) (string, error) {
	if x.connector == "lmcache" {
		return "left out: vLLM 0.32 with LMCache 0.5.6 ends its engine when a client leaves, without a router too", nil
	}
	for i := range 24 {
		limit, cancel := context.WithTimeout(ctx, []time.Duration{5, 20, 50, 100, 200, 400}[i%6]*time.Millisecond)
		x.router.client.post(limit, kinds[i%8].path, kinds[i%8].body(fresh(400), 200))
		cancel()
	}
	left := time.Now()
	limit, cancel := context.WithTimeout(ctx, 20*time.Second) // a lease of NIXL's runs out after 30
	defer cancel()
	for {
		busy, err := x.p.client.sum(ctx, "vllm:kv_cache_usage_perc{", "vllm:num_requests_running{",
			"vllm:num_requests_waiting{")
		if err == nil && busy == 0 {
			break
		}
		select {
		case <-limit.Done():
			return "", fmt.Errorf("20 s after 24 clients have left the prefiller keeps memory: %v (%v)", busy, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	took := time.Since(left)
	expired, err := x.p.client.sum(ctx, "vllm:nixl_num_kv_expired_reqs_total{")
	if err != nil {
		return "", err
	}
	if expired > 0 {
		return "", fmt.Errorf("%v prompts were kept until their lease ran out", expired)
	}
	return fmt.Sprintf("24 have left; the prefiller's memory was free %.1f s after the last one", took.Seconds()), nil
}

// checkKilled: a prefiller that is killed under load costs no client its answer.
func (x *duo) checkKilled(ctx context.Context) (string, error) {
	load := startLoad(ctx, x.router.client, 4)
	time.Sleep(5 * time.Second)
	x.p.kill()
	time.Sleep(10 * time.Second)
	answers := load.end()
	split := 0
	for _, a := range answers {
		if a.header.Get("X-Warmpath-Prefiller") == "p" {
			split++
		}
	}
	figure, err := tally(answers)
	if err == nil && split == 0 {
		err = errors.New("none was split before")
	}
	return fmt.Sprintf("%s; %d were split", figure, split), err
}

// checkDecoderKilled: with prefillers_answer, a decoder that is killed under load costs no client an answer of which
// nothing had come. The prefiller answers what comes afterwards.
func (x *duo) checkDecoderKilled(ctx context.Context) (string, error) {
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	r, err := x.route(ctx, settings{name: x.connector + "-answers", port: ports[0], admin: ports[1], answers: true})
	if err != nil {
		return "", err
	}
	defer r.kill()
	load := startLoad(ctx, r.client, 4)
	time.Sleep(5 * time.Second)
	x.d.kill()
	killed := time.Now() // kill looks for files first: an answer may begin meanwhile
	time.Sleep(10 * time.Second)
	begun, rest, err := brokenBegun(load.end(), killed)
	if err != nil {
		return "", err
	}
	figure, err := tally(rest)
	return fmt.Sprintf("%s; %d streams that had begun told of the break", figure, begun), err
}

// checkBack: a prefiller or a decoder that was started again is used, by or with the same other one.
func (x *duo) checkBack(ctx context.Context, id string) (string, error) {
	w, err := x.start(id)
	if err != nil {
		return "", err
	}
	if id == "p" {
		x.p = w
	} else {
		x.d = w
	}
	if _, err := w.ready(ctx); err != nil {
		return "", err
	}
	k := kinds[0] // a first answer compiles for up to a minute
	if err := w.client.post(ctx, k.path, k.body(fresh(1), 1)).fault(); err != nil {
		return "", err
	}
	if err := x.router.up(ctx, []*vllm{x.p, x.d}); err != nil {
		return "", err
	}
	before, err := x.d.client.sum(ctx, fromElsewhere)
	if err != nil {
		return "", err
	}
	const n = 4
	for range n {
		a := x.router.client.post(ctx, kinds[0].path, kinds[0].body(fresh(100), 8))
		if err := a.fault(); err != nil {
			return "", err
		}
		if by := a.header.Get("X-Warmpath-Prefiller"); by != "p" {
			return "", fmt.Errorf("the prefiller was %q; want p", by)
		}
	}
	read, err := x.d.client.sum(ctx, fromElsewhere)
	if err != nil {
		return "", err
	}
	if read-before < 50*n {
		return "", fmt.Errorf("the decoder has read %v tokens of %d prompts", read-before, n)
	}
	return fmt.Sprintf("%d more were split; the decoder read %v tokens of KV", n, read-before), nil
}
