// Command tiers runs a real vLLM with LMCache's multi-process server on the CPU, and warmpath as the tier behind that
// server. A prompt is computed and stored in both; then vLLM's own blocks are evicted by other prompts and LMCache's
// memory is cleared, so that the same prompt can come from warmpath alone. It must: with a hit at the door, cached
// tokens in vLLM's answer, and the same text. At last warmpath's values are deleted too, and the prompt must be
// computed anew, which shows that nothing else had it. It prints one JSON line for each door. See README.md one folder
// up.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// figure is the line of a door.
type figure struct {
	Door     string `json:"door"`
	OK       bool   `json:"ok"`
	Why      string `json:"why,omitempty"`
	Stored   int    `json:"stored_values"` // at warmpath, after the first answer
	Hits     int    `json:"hits"`          // at warmpath, of the second answer
	Cached   [3]int `json:"cached_tokens"` // as vLLM says: first, from warmpath, after its values were deleted
	Answer   string `json:"answer"`        // of the first
	Again    string `json:"again"`
	Anew     string `json:"anew"`
	FirstMS  int64  `json:"first_ms"`
	AgainMS  int64  `json:"again_ms"`
	StartSec int64  `json:"start_s"`
}

// options are the flags.
type options struct {
	bin, python, model string
	keep               bool
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the program to check")
	flag.StringVar(&o.python, "python", "python3", "of an environment that has vllm and lmcache")
	flag.StringVar(&o.model, "model", "", "folder of a small model, as real/vllm/tiny_model.py makes one")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs")
	doors := flag.String("doors", "resp,hyperpod", "those to check")
	flag.Parse()
	good := true
	for _, door := range strings.Split(*doors, ",") {
		f := figure{Door: door}
		err := check(o, &f)
		if err != nil {
			f.Why = err.Error()
		}
		f.OK = err == nil
		good = good && f.OK
		_ = json.NewEncoder(os.Stdout).Encode(f)
	}
	if !good {
		os.Exit(1)
	}
}

// processes are those of one door.
type processes struct {
	options
	dir     string
	running []*exec.Cmd

	front, admin, door, segment string // of warmpath
	lmcache, lmcacheHTTP        string
	vllm                        string
}

const (
	block      = 128              // tokens, of vLLM on the CPU; LMCache's chunks are as long
	blocks     = 9                // of vLLM, one of which it does not use: room for two prompts
	length     = 3*block + 20     // of a prompt
	fillers    = 4                // prompts that evict another one from vLLM
	startLimit = 12 * time.Minute // a real engine takes 100 s on two free cores
)

func check(o options, f *figure) (err error) {
	dir, err := os.MkdirTemp("", "tiers")
	if err != nil {
		return err
	}
	r := &processes{options: o, dir: dir, segment: fmt.Sprintf("tiers-%d", os.Getpid())}
	defer func() {
		r.stop()
		if o.keep || err != nil {
			fmt.Fprintln(os.Stderr, "logs:", dir)
		} else {
			os.RemoveAll(dir)
		}
	}()
	start := time.Now()
	if err := r.start(f.Door); err != nil {
		return err
	}
	f.StartSec = int64(time.Since(start).Seconds())
	return r.judge(f)
}

func (r *processes) start(door string) error {
	for _, a := range []*string{&r.front, &r.admin, &r.door, &r.lmcache, &r.lmcacheHTTP, &r.vllm} {
		addr := rig.FreeAddr()
		*a = addr
	}
	doors, adapter := r.adapter(door)
	if adapter == "" {
		return fmt.Errorf("%q is no door: resp or hyperpod", door)
	}
	text := fmt.Sprintf("[server]\nlisten = '%s'\nadmin = '%s'\n[kv_cache]\nmax_bytes = 268435456\n%s"+
		"[[pools]]\nmodels = ['*']\nstrategy = 'prefixaware'\nworkers = [{ url = 'http://%s' }]\n",
		r.front, r.admin, doors, r.vllm)
	file := filepath.Join(r.dir, "warmpath.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := r.run("warmpath", r.door, r.bin, "serve", "--config", file); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(r.lmcache)
	httpHost, httpPort, _ := net.SplitHostPort(r.lmcacheHTTP)
	// The server's adapter connects at its start, and does not again: warmpath comes first.
	err := r.run("lmcache", r.lmcacheHTTP, filepath.Join(filepath.Dir(r.python), "lmcache"), "server", "--host", host,
		"--port", port, "--http-host", httpHost, "--http-port", httpPort, "--chunk-size", fmt.Sprint(block), "--l1-size-gb",
		"1", "--instance-id", "a", "--supported-transfer-mode", "auto", "--eviction-policy", "LRU", "--l2-adapter", adapter)
	if err != nil {
		return err
	}
	host, port, _ = net.SplitHostPort(r.vllm)
	connector := fmt.Sprintf(`{"kv_connector":"LMCacheMPConnector","kv_role":"kv_both","kv_connector_extra_config":`+
		`{"lmcache.mp.host":"tcp://127.0.0.1","lmcache.mp.port":%s}}`, portOf(r.lmcache))
	err = r.run("vllm", "http://"+r.vllm+"/health", r.python, "-m", "vllm.entrypoints.openai.api_server",
		"--model", r.model, "--served-model-name", "tiny", "--host", host, "--port", port, "--enforce-eager",
		"--max-model-len", "512", "--num-gpu-blocks-override", fmt.Sprint(blocks), "--enable-prompt-tokens-details",
		"--kv-transfer-config", connector)
	if err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); !answers("http://" + r.front + "/ready"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("warmpath does not find vLLM up within a minute")
		}
	}
	return nil
}

// adapter returns the configuration of warmpath's door and of LMCache's adapter to it.
func (r *processes) adapter(door string) (toml, adapter string) {
	switch door {
	case "resp":
		return fmt.Sprintf("resp = '%s'\n", r.door),
			fmt.Sprintf(`{"type":"resp","host":"127.0.0.1","port":%s,"num_workers":2}`, portOf(r.door))
	case "hyperpod":
		return fmt.Sprintf("hyperpod = '%s'\nsegment = '%s'\n", r.door, r.segment),
			fmt.Sprintf(`{"type":"sagemaker-hyperpod","url":"sagemaker-hyperpod://%s","shared_memory_name":"%s"}`, r.door,
				r.segment)
	}
	return "", ""
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// judge plays the prompts and fills the figure.
func (r *processes) judge(f *figure) error {
	first, err := r.ask(0)
	if err != nil {
		return err
	}
	f.Answer, f.FirstMS, f.Cached[0] = first.text, first.took.Milliseconds(), first.cached
	f.Stored, err = r.awaitValues()
	if err != nil {
		return err
	}
	if err := r.forget(1); err != nil {
		return err
	}
	before, err := r.cache()
	if err != nil {
		return err
	}
	again, err := r.ask(0)
	if err != nil {
		return err
	}
	after, err := r.cache()
	if err != nil {
		return err
	}
	f.Again, f.AgainMS, f.Cached[1] = again.text, again.took.Milliseconds(), again.cached
	f.Hits = after.hits() - before.hits()
	if err := r.forget(100); err != nil {
		return err
	}
	if err := r.call(http.MethodDelete, "http://"+r.admin+"/api/v1/cache/keys?prefix=", nil, nil); err != nil {
		return err
	}
	anew, err := r.ask(0)
	if err != nil {
		return err
	}
	f.Anew, f.Cached[2] = anew.text, anew.cached
	return f.judge()
}

func (f *figure) judge() error {
	switch {
	case f.Answer == "":
		return errors.New("the answer is empty")
	case f.Again != f.Answer || f.Anew != f.Answer:
		return errors.New("the answers differ")
	case f.Cached[0] != 0:
		return errors.New("the first answer had cached tokens: the prompt was not new")
	case f.Hits == 0 || f.Cached[1] == 0:
		return errors.New("the second answer did not come from warmpath")
	case f.Cached[2] != 0:
		return errors.New("the last answer had cached tokens, though nobody should have them: the second proves nothing")
	}
	return nil
}

// forget has vLLM evict its blocks by other prompts, and LMCache's server drop its memory.
func (r *processes) forget(from int) error {
	for i := range fillers {
		if _, err := r.ask(from + i); err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second) // what is being stored is not cleared
	return r.call(http.MethodPost, "http://"+r.lmcacheHTTP+"/cache/clear", map[string]any{}, nil)
}

// awaitValues waits until the values that a prompt has are at warmpath, and no more come.
func (r *processes) awaitValues() (n int, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		s, err := r.cache()
		if err != nil {
			return 0, err
		}
		if s.Puts >= length/block && s.Puts == n {
			return n, nil
		}
		n = s.Puts
	}
	return n, fmt.Errorf("%d values of a prompt of %d blocks came to warmpath within a minute", n, length/block)
}

// cacheState is what is used here of /api/v1/cache.
type cacheState struct {
	Puts  int
	Tiers []struct{ Hits int }
}

func (s *cacheState) hits() (n int) {
	for _, t := range s.Tiers {
		n += t.Hits
	}
	return n
}

func (r *processes) cache() (*cacheState, error) {
	s := new(cacheState)
	return s, r.call(http.MethodGet, "http://"+r.admin+"/api/v1/cache", nil, s)
}

// answer is what is used here of a completion.
type answer struct {
	text   string
	cached int
	took   time.Duration
}

// ask sends a prompt of its own for each number through warmpath.
func (r *processes) ask(number int) (a answer, err error) {
	tokens := make([]int, length)
	for i := range tokens {
		tokens[i] = 10 + (i*7+number*31+i*i*number)%80
	}
	var got struct {
		Choices []struct{ Text string }
		Usage   struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	start := time.Now()
	err = r.call(http.MethodPost, "http://"+r.front+"/v1/completions", map[string]any{"model": "tiny", "prompt": tokens,
		"max_tokens": 12, "temperature": 0, "ignore_eos": true}, &got)
	a.took = time.Since(start)
	if err == nil && len(got.Choices) > 0 {
		a.text = got.Choices[0].Text
	}
	a.cached = got.Usage.Details.Cached
	return a, err
}

// call sends a request with a JSON body, and reads a JSON answer.
func (r *processes) call(method, url string, body, into any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	q, err := http.NewRequest(method, url, in)
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	c := http.Client{Timeout: 5 * time.Minute}
	a, err := c.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s answers %s: %.500s", method, url, a.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
