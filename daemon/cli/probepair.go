package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// probePairs checks whether the workers of a pool with [pools.disaggregation] can transfer the KV of a prompt to each
// other. It adds each failure to the findings of its worker. all[i] has the findings of workers[i].
func (x *prober) probePairs(ctx context.Context, workers []conf.Worker, all []probeFinding) {
	var prefill, decode []int // of workers that answer
	for i := range workers {
		switch {
		case len(all[i].Good) == 0: // it is not healthy
		case workers[i].RoleOf() == conf.RolePrefill:
			prefill = append(prefill, i)
		default:
			decode = append(decode, i)
		}
	}
	wrong := func(i int, format string, args ...any) {
		all[i].Wrong = append(all[i].Wrong, fmt.Sprintf(format, args...))
	}
	switch pair.Connector(x.pool.Disaggregation.Connector).Proof() {
	case pair.ByParams:
		of := map[string]*[2][]int{} // prefillers and those that answer, by what they have in common
		for role, list := range [][]int{prefill, decode} {
			for _, i := range list {
				mates := x.pool.Disaggregation.Mates(&workers[i])
				if of[mates] == nil {
					of[mates] = new([2][]int)
				}
				of[mates][role] = append(of[mates][role], i)
			}
		}
		for _, g := range of {
			for i := 0; i < max(len(g[0]), len(g[1])) && min(len(g[0]), len(g[1])) > 0; i++ { // each of both once, at least
				p, d := g[0][i%len(g[0])], g[1][i%len(g[1])]
				x.probePair(ctx, &workers[p], &workers[d], func(format string, args ...any) { wrong(p, format, args...) },
					func(format string, args ...any) { wrong(d, format, args...) })
			}
		}
	case pair.ByBootstrap:
		for _, i := range prefill {
			u, _ := url.Parse(workers[i].URL) // it has answered
			at := net.JoinHostPort(u.Hostname(), strconv.Itoa(x.pool.Disaggregation.BootstrapPort))
			if text, err := x.ask(ctx, "http://"+at+"/query"); err != nil {
				wrong(i, "it will not pair: its bootstrap server at %s: %v; set bootstrap_port to vLLM's "+
					"VLLM_MOONCAKE_BOOTSTRAP_PORT", at, err)
			} else if pair.EngineOf(text, 0) == "" {
				wrong(i, "it will not pair: its bootstrap server at %s names no engine", at)
			}
		}
	case pair.ByMode:
		for _, i := range append(prefill, decode...) {
			x.probeMode(ctx, &workers[i], func(format string, args ...any) { wrong(i, format, args...) })
		}
	}
}

// probePair sends a short prompt through a prefiller and a decoder, as for a client's request.
func (x *prober) probePair(ctx context.Context, p, d *conf.Worker, wrongAtP, wrongAtD func(string, ...any)) {
	models, err := x.models(ctx, p)
	fit := x.fitting(models)
	if err != nil || len(fit) == 0 {
		return // the worker's own finding says so
	}
	t := pair.Transfer{Connector: pair.NIXL, Kind: prompt.Completion}
	body, _ := json.Marshal(map[string]any{"model": fit[0], "max_tokens": 1,
		"prompt": "Whether the key and value tensors of this prompt come from one worker to the other is tried here."})
	answer, err := x.send(ctx, p.URL+"/v1/completions", t.Prefill(body))
	handed := pair.Handed(answer)
	switch {
	case err != nil:
		wrongAtP("it will not pair: a prefill: %v", err)
		return
	case handed == nil:
		wrongAtP("it will not pair: its answer names no kv_transfer_params; start vLLM with --kv-transfer-config, " +
			"NixlConnector and kv_role kv_producer or kv_both")
		return
	}
	answer, err = x.send(ctx, d.URL+"/v1/completions", t.Decode(body, handed))
	var said struct {
		Usage struct {
			Details struct {
				Cached *int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	switch {
	case err == nil && json.Unmarshal(answer, &said) == nil && said.Usage.Details.Cached != nil &&
		*said.Usage.Details.Cached == 0: // a decoder counts all tokens that it received
		wrongAtD("it will not pair with prefiller %s: it has read nothing of what that one keeps; start vLLM with "+
			"--kv-transfer-config, NixlConnector and kv_role kv_consumer or kv_both", p.ID)
	case err != nil:
		wrongAtD("it will not pair with prefiller %s: %v; is NixlConnector on, and can it reach that one's side channel?",
			p.ID, err)
	}
}

// probeMode compares the mode in which an SGLang server was started with its role in the file.
func (x *prober) probeMode(ctx context.Context, w *conf.Worker, wrong func(string, ...any)) {
	text, err := x.ask(ctx, w.URL+"/get_server_info")
	if err != nil {
		wrong("/get_server_info: %v: whether it pairs is not known", err)
		return
	}
	var said struct {
		Mode string `json:"disaggregation_mode"`
	}
	role := w.RoleOf()
	mode := role
	if role == conf.RoleBoth {
		mode = "null"
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Mode != mode {
		wrong("it will not pair: it was started with --disaggregation-mode %q, and its role here is %s", said.Mode, role)
	}
}

// send posts a body to a worker and returns its answer.
func (x *prober) send(ctx context.Context, to string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return x.do(req)
}

// do sends a request with the workers' key, and reads the answer.
func (x *prober) do(req *http.Request) ([]byte, error) {
	if x.key != "" {
		req.Header.Set("Authorization", "Bearer "+x.key)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProbed))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("HTTP " + resp.Status)
	}
	return text, err
}
