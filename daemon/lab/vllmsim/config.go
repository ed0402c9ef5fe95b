package vllmsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/lmworker"
)

// Config describes one simulated worker. The zero value serves the model "sim" in real time.
type Config struct {
	// Engine is the server whose wire is played: "" for vLLM's, or EngineSGLang.
	Engine string
	// ID names the worker in /sim/stats. Default "sim".
	ID string
	// Models are the served names of the one model, the first being the one that answers carry. Default ["sim"].
	Models []string
	// KVTokens, BlockTokens, MaxModelLen, MaxBatchedTokens and MaxSeqs are those of engine.Config, with its defaults.
	KVTokens         int
	BlockTokens      int
	MaxModelLen      int
	MaxBatchedTokens int
	MaxSeqs          int
	// Speed is how many simulated seconds pass in a second. Default 1. Above 1 a stream gets at most one event in 10 ms.
	Speed float64
	// Model gives the duration of a step, but for its Slowness. Default engine.DefaultModel.
	Model engine.Model
	// Slowness multiplies the duration of every step: 2 is a worker half as fast. Default 1.
	Slowness float64
	// ReplyTokens is the mean length of a reply that ends by itself. Default 64.
	ReplyTokens int
	// APIKey is the bearer key that paths under /v1, /v2 and /inference ask for, as --api-key. Default none.
	APIKey string
	// Sessions makes the worker stateful, as SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true does. Off, it refuses what names a
	// session.
	Sessions bool
	// SessionLife is how long a session lives from its opening, as SAGEMAKER_SESSIONS_EXPIRATION. Default 20 minutes.
	SessionLife time.Duration
	// DataParallel is the number of engines behind the worker's one port, each with a cache of its own, as
	// --data-parallel-size. Default 1.
	DataParallel int
	// CPUTokens is the size of each engine's CPU tier, 0 for none, and Shared a tier that other workers may use too, nil
	// for none. See engine.Config.
	CPUTokens int
	Shared    *engine.Tier
	// Role and Connector make the worker one side of a disaggregated pair, as --kv-transfer-config does. Connector is
	// ConnectorNIXL; default none, and then the worker ignores kv_transfer_params. Role is RolePrefill, RoleDecode or
	// RoleBoth, the default.
	Role, Connector string
	// KVHints makes the worker copy the blocks that a request's kv_hints name from another worker. Default it ignores the
	// field.
	KVHints bool
	// LoadFailure is what a decode worker does if the prefill worker has lost the blocks, as --kv-load-failure-policy:
	// LoadFail, the default, or LoadRecompute.
	LoadFailure string
	// KVRate is how many tokens of KV a simulated second come from another worker. Default 40,000.
	KVRate float64
	// PinLife is how long the worker keeps the blocks of a prompt that are not pulled, as kv_lease_duration of vLLM 0.32,
	// where a decode worker renews this lease while the request waits there. Default 30 s.
	PinLife time.Duration
	// PinFixed keeps blocks for PinLife whatever waits, as older releases do by VLLM_NIXL_ABORT_REQUEST_TIMEOUT. PinLife's
	// default is 8 minutes then.
	PinFixed bool
	// MaxLoras is the number of LoRA adapters that run at a time, as --max-loras, and LoraLoad the simulated seconds to
	// load one. Default 0: the worker takes no adapters.
	MaxLoras int
	LoraLoad float64
	// Loras are adapters that the worker lists from its start.
	Loras []string
	// KVEvents is where the worker publishes its caches. Default nowhere.
	KVEvents KVEvents
	// LMCache makes each engine's CPU tier LMCache's, which reports to a controller. Default it is vLLM's own offloading.
	LMCache LMCache
	// Script is how the worker drives an agent: in the n-th turn of a conversation, which has n-1 results of tools, it
	// calls the tool of Script[n-1] that the request offers. Default it calls none on its own.
	Script []Turn
	// DevMode adds POST /reset_prefix_cache, and the calls of trainers and of sleep, as VLLM_SERVER_DEV_MODE=1 does.
	DevMode bool
	// UpdateSeconds is how long an update of the weights takes that gives no "seconds", in simulated seconds. Default 0.
	UpdateSeconds float64
	// ScaleOut serves /v1/chat/completions/render, /v1/completions/render and /v1/messages/render, as --enable-scale-out
	// does. Without it they answer 403.
	ScaleOut bool
	// Seed varies the replies. Workers of one seed answer alike.
	Seed uint64
}

// NewTier returns a tier of so many tokens for the Shared of workers with this configuration.
func NewTier(tokens int, c Config) *engine.Tier {
	return engine.NewTier(tokens, cmp.Or(c.chunkTokens(), c.BlockTokens, engine.BlockTokens))
}

// chunkTokens returns what the tiers store as one, 0 for a block.
func (c *Config) chunkTokens() int {
	if c.LMCache.Pull != "" {
		return lmworker.ChunkTokens
	}
	return 0
}

// LMCache is the controller to which an engine's CPU tier reports.
type LMCache struct {
	// Pull, Reply and Heartbeat are the controller's addresses, host:port. Without Heartbeat the one is taken that the
	// controller gives. Default none, which is no LMCache.
	Pull, Reply, Heartbeat string
	// Release is lmworker.Release056, the default, or lmworker.Release039.
	Release string
}

// lmcacheTokens is the CPU tier of LMCache's default of 5 GB, at the 128 KB that a token of an 8B model has.
const lmcacheTokens = 40_960

// flushEvery is how often a stream of an accelerated worker gets an event, in wall time.
const flushEvery = 10 * time.Millisecond

func (c Config) withDefaults() (Config, error) {
	if c.Engine != "" && c.Engine != EngineSGLang {
		return c, fmt.Errorf("vllmsim: engine %q; give %s, or none for vLLM's", c.Engine, EngineSGLang)
	}
	if c.Engine == EngineSGLang {
		c.KVEvents.Form = events.Array
	}
	if c.ID == "" {
		c.ID = "sim"
	}
	if len(c.Models) == 0 {
		c.Models = []string{"sim"}
	}
	setDefault(&c.Speed, 1)
	setDefault(&c.ReplyTokens, 64)
	setDefault(&c.SessionLife, sessionLife)
	setDefault(&c.DataParallel, 1)
	if c.PinFixed {
		setDefault(&c.PinLife, fixedPinLife)
	}
	setDefault(&c.PinLife, pinLife)
	if err := c.completeTransfer(); err != nil {
		return c, err
	}
	if c.LMCache.Pull != "" {
		setDefault(&c.CPUTokens, lmcacheTokens)
	}
	if c.DataParallel < 0 || c.Speed < 0 || c.ReplyTokens < 0 || c.SessionLife < 0 || c.PinLife < 0 || c.KVRate < 0 {
		return c, fmt.Errorf("vllmsim: a negative size or speed in %+v; give a positive one, or 0 for the default", c)
	}
	e, err := c.engine().Complete()
	if err != nil {
		return c, fmt.Errorf("vllmsim: %w", err)
	}
	c.BlockTokens = e.BlockTokens
	c.MaxModelLen = e.MaxModelLen
	return c, nil
}

// engine returns the configuration of the worker's engine.
func (c Config) engine() engine.Config {
	model := c.Model
	if c.Slowness != 0 {
		model.Slowness = c.Slowness
	}
	e := engine.Config{
		KVTokens:         c.KVTokens,
		BlockTokens:      c.BlockTokens,
		MaxModelLen:      c.MaxModelLen,
		MaxBatchedTokens: c.MaxBatchedTokens,
		MaxSeqs:          c.MaxSeqs,
		CPUTokens:        c.CPUTokens,
		Shared:           c.Shared,
		ChunkTokens:      c.chunkTokens(),
		MaxLoras:         c.MaxLoras,
		LoraSeconds:      c.LoraLoad,
		Changes:          c.KVEvents.Endpoint != "" || c.LMCache.Pull != "",
		Model:            model,
	}
	if c.KVRate > 0 {
		e.RemoteSeconds = 1 / c.KVRate
	}
	if c.Speed > 1 {
		e.ShowEvery = time.Duration(float64(flushEvery) * c.Speed)
	}
	return e
}

func setDefault[T int | float64 | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// ConnectorNIXL is the value of Config.Connector for vLLM's NixlConnector.
const ConnectorNIXL = "nixl"

// The values of Config.Role. A worker refuses with 400 what is the other side's.
const (
	RolePrefill = "prefill"
	RoleDecode  = "decode"
	RoleBoth    = "both"
)

// The values of Config.LoadFailure.
const (
	LoadFail      = "fail"      // the request ends with an error
	LoadRecompute = "recompute" // the worker computes the prompt itself
)

// vLLM's defaults of kv_lease_duration, and of VLLM_NIXL_ABORT_REQUEST_TIMEOUT before.
const (
	pinLife      = 30 * time.Second
	fixedPinLife = 480 * time.Second
)

// completeTransfer sets the role, or returns what is wrong with it.
func (c *Config) completeTransfer() error {
	if c.Connector == "" && c.Role == "" {
		return nil
	}
	c.Role = cmp.Or(c.Role, RoleBoth)
	if !slices.Contains([]string{RolePrefill, RoleDecode, RoleBoth}, c.Role) {
		return fmt.Errorf("vllmsim: role %q; give %s, %s or %s", c.Role, RolePrefill, RoleDecode, RoleBoth)
	}
	c.LoadFailure = cmp.Or(c.LoadFailure, LoadFail)
	if c.LoadFailure != LoadFail && c.LoadFailure != LoadRecompute {
		return fmt.Errorf("vllmsim: load failure policy %q; give %s or %s", c.LoadFailure, LoadFail, LoadRecompute)
	}
	if c.Connector != ConnectorNIXL {
		return fmt.Errorf("vllmsim: connector %q with role %s; give %s", c.Connector, c.Role, ConnectorNIXL)
	}
	return nil
}
