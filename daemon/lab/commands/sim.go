package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/lmworker"
)

const simHelp = `Run simulated vLLM workers: real wire, paged KV cache and time model, no GPU.

With --engine sglang they play SGLang's chats, completions, /metrics, /health_generate, /get_model_info and
/get_server_info, and publish KV events in its form. What time a step takes and what the cache keeps is as with vLLM.

With --kv-events each worker publishes what its caches hold, as vLLM does. GET /kv_event_sources says where, also for
ports that were found for 0. As in vLLM an address with * or ipc:// is listened at and any other is dialled; with
--data-parallel rank r has the port r above the first one's.

With --cpu-tokens what the KV cache forgets is loaded from the CPU tier instead of computed, 120,000 tokens a second,
and with --shared from a tier that all workers of this process share, 40,000 a second. With --lmcache the CPU tier is
LMCache's, in chunks of 256 tokens, and reports to a controller as the instance sim-0, sim-1, ... (-dp1 and so on behind
it for further ranks); then --kv-events tells of the GPU alone.

With --connector nixl the workers take vLLM's kv_transfer_params on chats, completions, responses and messages, and
refuse wrong ones with 400. With --role prefill they only compute prompts and keep the blocks until a decode worker has
pulled them, --kv-transfer-rate tokens a second; with --role decode they only pull. A decode worker whose prefill worker
has restarted answers 500, or with --kv-load-failure-policy recompute computes the prompt itself. /sim/stats has
blocks_pinned, and as blocks_stranded those that nobody pulled within --pin-life; with some of either the command fails
at its end. As with vLLM 0.32 a decode worker renews that time while a request waits there, unless --pin-fixed is set.

With --max-loras the workers serve LoRA adapters: POST /v1/load_lora_adapter and /v1/unload_lora_adapter, and those of
--lora from their start. So many run at a time; a load takes --lora-load seconds of the engine. A path whose last part
begins with "missing" has no adapter: 404. /sim/stats has adapter_loads.

With --dev the workers take vLLM's calls for trainers: /pause (mode abort, wait or keep), /resume, /is_paused, /sleep
(level 0 to 2), /wake_up (tags), /is_sleeping, /abort_requests, /init_weight_transfer_engine, /start_weight_update,
/update_weights, /finish_weight_update, /update_weight_version, /weight_info and /collective_rpc. An update takes
update_info.seconds, or --update-seconds. A block remembers the weights that have computed it: system_fingerprint of
chats and completions ends with -weights-12, or -weights-12-13 where they changed in between, and with -stale-64 where
64 tokens of the prompt came from blocks of other weights. /sim/stats has stale_requests, and /metrics
sim:stale_requests_total.

POST /sim/fault {"mode": "503", "count": 3, "seconds": 10} injects a fault: the next three requests meet it, within ten
seconds. Without count all do, without seconds until {"mode": "none"}. The modes:

  die           the port is closed and the cache lost
  503           every path answers 503
  stall         requests hang, and /health answers
  slow-health   /health takes "delay" seconds
  drain         SIGTERM with --shutdown-timeout: what runs ends, new requests get an empty 200
  abort         SIGTERM without it: what runs ends at once, with finish_reason "abort"
  reset         the connection is reset before the first byte
  cut           it is closed after the first token
  half-close    it is closed for writing in the midst of an answer
  error-event   the engine dies after the first token: an error event; plain requests get 500
  garbage       what follows the first token is no event; plain answers are no HTTP
  bad-frame     a chunk without a size follows the first token; plain answers have two lengths
  short-length  the answer is shorter than its Content-Length
  accept-only   requests are read and never answered
  open-error    a session is not opened: 424
  open-bare     a session is opened, and the answer names it in no header

Of KV events: events-gap, events-duplicate, events-reorder, events-silence, events-cut, events-restart. Their count is
one of messages.`

// setLMCache sets the addresses of a controller: none, or pull and reply, or these and heartbeat.
func setLMCache(c *vllmsim.LMCache, addrs []string) error {
	switch len(addrs) {
	case 0:
		return nil
	case 2, 3:
		c.Pull = addrs[0]
		c.Reply = addrs[1]
		c.Heartbeat = strings.Join(addrs[2:], "")
		return nil
	}
	return fmt.Errorf("--lmcache has %d addresses; give PULL,REPLY or PULL,REPLY,HEARTBEAT, each host:port", len(addrs))
}

// readScript reads the calls by which the workers drive agents.
func readScript(script *[]vllmsim.Turn, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, script)
}

// adapterFlags adds the flags of LoRA adapters.
func adapterFlags(c *cobra.Command, cfg *vllmsim.Config) {
	f := c.Flags()
	f.IntVar(&cfg.MaxLoras, "max-loras", 0, "LoRA adapters that run at a time; with 0 a worker takes none")
	f.Float64Var(&cfg.LoraLoad, "lora-load", 0, "seconds to load one")
	f.StringSliceVar(&cfg.Loras, "lora", nil, "adapters that each worker lists from its start")
}

func simCommand() *cobra.Command {
	var listen string
	var count int
	var cfg vllmsim.Config
	var form string
	var shared int
	var lmcache []string
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run simulated vLLM workers: real wire, paged KV cache and time model, no GPU",
		Args:  cobra.NoArgs,
		Long:  simHelp,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg.KVEvents.Form = events.Form(form)
			if cfg.KVEvents.Replay == "none" {
				cfg.KVEvents.Replay = ""
			}
			if err := setLMCache(&cfg.LMCache, lmcache); err != nil {
				return err
			}
			if shared > 0 {
				cfg.Shared = vllmsim.NewTier(shared, cfg)
			}
			fleet, err := vllmsim.StartFleet(listen, count, cfg)
			if err != nil {
				return err
			}
			defer fleet.Close()
			for _, u := range fleet.URLs() {
				fmt.Fprintln(c.OutOrStdout(), u)
			}
			<-c.Context().Done()
			return fleet.Stranded()
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:9001", "address of the first worker; the others take the ports that follow")
	f.IntVar(&count, "count", 1, "number of workers")
	f.StringVar(&cfg.Engine, "engine", "", "sglang, or vLLM by default")
	f.IntVar(&cfg.KVTokens, "kv-tokens", 524288, "KV cache of each worker, in tokens")
	f.Float64Var(&cfg.Speed, "speed", 1, "simulated seconds in a second")
	f.Float64Var(&cfg.Slowness, "slowness", 1, "factor on the time of every step")
	f.StringSliceVar(&cfg.Models, "model", []string{"sim"}, "served model names")
	f.IntVar(&cfg.MaxModelLen, "max-model-len", 0, "longest prompt and reply, in tokens (default: what the cache holds)")
	f.StringVar(&cfg.APIKey, "api-key", "", "bearer key that paths under /v1, /v2 and /inference ask for")
	f.BoolVar(&cfg.Sessions, "sessions", false, "keep SageMaker sessions on /invocations")
	f.DurationVar(&cfg.SessionLife, "session-life", 20*time.Minute, "of each, from its opening")
	f.IntVar(&cfg.BlockTokens, "block-tokens", 16, "tokens of a KV block")
	f.IntVar(&cfg.DataParallel, "data-parallel", 1,
		"engines of each worker, each with a cache of its own; X-data-parallel-rank chooses one")
	f.IntVar(&cfg.CPUTokens, "cpu-tokens", 0, "CPU tier of each engine, in tokens: it keeps what the KV cache forgets")
	adapterFlags(c, &cfg)
	f.IntVar(&shared, "shared", 0, "tier that all these workers share, in tokens")
	transferFlags(c, &cfg)
	f.StringVar(&cfg.KVEvents.Endpoint, "kv-events", "",
		"publish KV events at tcp://127.0.0.1:0, tcp://*:PORT or ipc://PATH, or dial tcp://HOST:PORT")
	f.StringVar(&cfg.KVEvents.Replay, "kv-events-replay", "tcp://127.0.0.1:0", "replay missed events here, or none")
	f.StringVar(&cfg.KVEvents.Topic, "kv-events-topic", "kv@{id}@{model}", "topic of the events")
	f.StringVar(&form, "kv-events-form", "map", "map, as vLLM 0.30 to 0.32, or array, as 0.17 to 0.19")
	f.IntVar(&cfg.KVEvents.Buffer, "kv-events-buffer", 10000, "messages that a replay reaches back")
	f.StringSliceVar(&lmcache, "lmcache", nil, "report the CPU tier to LMCache's controller at PULL,REPLY[,HEARTBEAT], "+
		"each host:port")
	f.StringVar(&cfg.LMCache.Release, "lmcache-release", lmworker.Release056,
		"LMCache whose wire is spoken: "+lmworker.Release056+" or "+lmworker.Release039)
	f.BoolVar(&cfg.ScaleOut, "enable-scale-out", false, "serve the render endpoints")
	f.BoolVar(&cfg.DevMode, "dev", false, "serve what VLLM_SERVER_DEV_MODE=1 adds: /reset_prefix_cache, /pause, /sleep, "+
		"/update_weights and the like")
	f.Float64Var(&cfg.UpdateSeconds, "update-seconds", 0, "with --dev: of an update of the weights that gives none")
	f.Func("script", "drive agents: a JSON `file` with a list, for each turn a call's arguments by the tool's name",
		func(file string) error { return readScript(&cfg.Script, file) })
	f.Uint64Var(&cfg.Seed, "seed", 0, "varies the replies")
	return c
}

// transferFlags adds the flags of a worker that is one side of disaggregated pairs.
func transferFlags(c *cobra.Command, cfg *vllmsim.Config) {
	f := c.Flags()
	f.StringVar(&cfg.Connector, "connector", "", "serve one side of disaggregated pairs: nixl")
	f.StringVar(&cfg.Role, "role", "", "with --connector: prefill, decode or both (default both)")
	f.Float64Var(&cfg.KVRate, "kv-transfer-rate", 40_000, "tokens of KV a second that a decode worker pulls")
	f.StringVar(&cfg.LoadFailure, "kv-load-failure-policy", "",
		"fail or recompute: what a decode worker does if the prefill worker has lost the blocks (default fail)")
	f.DurationVar(&cfg.PinLife, "pin-life", 0, "of a prompt's blocks that no decode worker pulls (default 30s, as vLLM "+
		"0.32; decode workers renew it while a request waits there)")
	f.BoolVar(&cfg.PinFixed, "pin-fixed", false, "nobody renews --pin-life, as with older vLLM (its default is 8m then)")
}
