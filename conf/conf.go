package conf

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// Config is the whole file.
type Config struct {
	Server     Server              `toml:"server"`
	Keys       []Key               `toml:"keys"`  // who may send requests; none = everybody
	Pools      []Pool              `toml:"pools"` // the first that fits a model serves it
	Models     []Model             `toml:"models"`
	Cache      Cache               `toml:"cache"`
	History    History             `toml:"history"`
	Tracing    Tracing             `toml:"tracing"`
	Sessions   Sessions            `toml:"sessions"`
	KVCache    KVCache             `toml:"kv_cache"`
	LMCache    LMCache             `toml:"lmcache"`
	Strategies map[string]Strategy `toml:"strategies"` // modules of one's own, and options of the built-ins

	// Path is the file that was read, as given to Load.
	Path string `toml:"-"`

	Activated map[string]Activation `toml:"-"` // by pool, in force: see Server.StrategiesDir
	Ended     []Ended               `toml:"-"` // activations that are not in force

	lines map[string]int `toml:"-"` // of the keys in the file
	sums  map[string]sum `toml:"-"` // of Files, as Load found them; nil after Parse
}

// Server is what the process is for its clients and its operator.
type Server struct {
	Listen         string        `toml:"listen" reload:"restart"`           // clients
	Admin          string        `toml:"admin" reload:"restart"`            // /metrics, /health, /ready
	AdminTokenFile string        `toml:"admin_token_file" reload:"restart"` // for admin; needed unless it is on loopback
	TLSCertFile    string        `toml:"tls_cert_file" reload:"restart"`    // PEM; with TLSKeyFile: TLS for clients
	TLSKeyFile     string        `toml:"tls_key_file" reload:"restart"`     // PEM
	MaxConnections int           `toml:"max_connections" reload:"restart"`  // of clients; more are closed at once
	MaxInFlight    int           `toml:"max_in_flight"`                     // requests at a time; more get 429
	MaxHeaderBytes int           `toml:"max_header_bytes" reload:"restart"` // all fields of a request; more get 431
	MaxBodyBytes   int           `toml:"max_body_bytes"`                    // a longer request body gets 413
	BufferBody     int           `toml:"buffer_body_bytes"`                 // of a body in memory; the rest is streamed
	OverflowDir    string        `toml:"overflow_dir"`                      // keeps long bodies until they can be routed
	OverflowBytes  int           `toml:"overflow_bytes"`                    // of all of them; 0 = none is kept
	ReadTimeout    time.Duration `toml:"read_timeout" reload:"restart"`     // for a header, and for each piece of a body
	WriteTimeout   time.Duration `toml:"write_timeout" reload:"restart"`    // for a client to take one piece of an answer
	IdleTimeout    time.Duration `toml:"idle_timeout" reload:"restart"`     // keep-alive between a client's requests
	Keepalive      time.Duration `toml:"keepalive"`                         // between comments to who waits; 0 = none
	WebsocketIdle  time.Duration `toml:"websocket_idle"`                    // neither side sends anything; 0 = for ever
	DrainDelay     time.Duration `toml:"drain_delay"`                       // from SIGTERM to the drain
	DrainTimeout   time.Duration `toml:"drain_timeout"`                     // then, for open streams to end
	CORSOrigins    []string      `toml:"cors_origins"`                      // whose pages may call; "*" = any
	RootPaths      []string      `toml:"root_paths"`                        // prefixes that a proxy does not remove
	DeadlineHeader []string      `toml:"deadline_header"`                   // in which clients say how long they wait
	AccessLog      string        `toml:"access_log"`                        // "", stdout, stderr or a file
	ExplainLog     ExplainLog    `toml:"explain_log"`                       // whose line lists the candidates
	DecisionsBytes int           `toml:"decisions_bytes"`                   // of memory for the last decisions; 0 = none
	WorkerMetrics  string        `toml:"worker_metrics"`                    // all | gauges | none
	Explain        bool          `toml:"explain"`                           // answer X-Warmpath-Explain: 1 in headers
	Pprof          bool          `toml:"pprof"`                             // /debug/pprof on admin without a token
	ModuleCache    string        `toml:"module_cache" reload:"restart"`     // folder of compiled modules; see CacheDir
	StrategiesDir  string        `toml:"strategies_dir"`                    // folder of modules NAME.wasm; "" = none
	StateFile      string        `toml:"state_file" reload:"restart"`       // what a restart starts with; "" = none
	KVEventsListen string        `toml:"kv_events_listen" reload:"restart"` // for workers that dial us; "" = none
	LogFormat      string        `toml:"log_format" reload:"restart"`       // text | json
	LogLevel       string        `toml:"log_level"`                         // debug | info | warn | error
}

// Key is a client's API key. Its secret stands in a file or the environment, never here.
type Key struct {
	Name   string   `toml:"name"`   // in logs
	File   string   `toml:"file"`   // holds the key; read again at a reload
	Env    string   `toml:"env"`    // or this variable holds it
	Models []string `toml:"models"` // that it may use: names, "org/*", "*"

	Workers string `toml:"workers"` // labels of the workers that alone get its requests, as "for=acme, tier=gold"

	Priority []int   `toml:"priority"` // the least and the greatest that its requests may ask for
	Weight   float64 `toml:"weight"`   // its share of a queue beside the other keys' of the same priority

	Explain   bool      `toml:"explain"`    // it may ask how its requests were decided; others' prompts show in that
	CacheSalt CacheSalt `toml:"cache_salt"` // keeps its prompts apart in the workers' caches

	MaxInFlight int    `toml:"max_in_flight"`       // its requests at a time; 0 = no limit. More get 429
	Requests    int    `toml:"requests_per_minute"` // likewise
	Tokens      int    `toml:"tokens_per_minute"`   // likewise: of prompts and answers
	Count       string `toml:"count"`               // uncached | all: which tokens of prompts

	WebsocketLife time.Duration `toml:"websocket_life"` // a WebSocket of it ends after that; 0 = no limit
}

// Model is a name that clients use for other models: an alias, a hidden name, or one with a fallback. It goes before a
// model of that name which a worker serves.
type Model struct {
	Name   string   `toml:"name"`
	To     []Target `toml:"to"`     // the models that serve it; none = the name itself
	Hidden bool     `toml:"hidden"` // GET /v1/models does not show it

	Fallback string   `toml:"fallback"` // the alias or model that serves what this one cannot; "" = none
	On       []string `toml:"on"`       // down | full | context: why it does; default all three
}

// Target is a model that serves a part of an alias's sessions.
type Target struct {
	Model  string  `toml:"model"`
	Weight float64 `toml:"weight"` // its part, beside those of the other targets; default 1
}

// Pool is a set of workers that serve the same models.
type Pool struct {
	Name     string         `toml:"name"`     // in metrics and logs; default pool1, pool2, ... by order
	Models   []string       `toml:"models"`   // exact names, "org/*", "*"
	Strategy Chain          `toml:"strategy"` // each a built-in or a key of Config.Strategies
	Options  map[string]any `toml:"options"`  // scalars; over those of the one that orders, see Config.OptionValues
	Workers  []Worker       `toml:"workers"`

	Shadow []Shadow `toml:"shadow"` // strategies that decide beside it and answer nowhere
	Canary []Canary `toml:"canary"` // strategies that serve a part of the requests

	WorkersFile string `toml:"workers_file"` // beside or instead of workers: a TOML file of [[workers]]. Watched
	WorkersDNS  string `toml:"workers_dns"`  // or name:port, every address of which is a worker. Resolved again and again

	Kubernetes Kubernetes `toml:"kubernetes"` // or the ready pods of a service

	WorkerKeyFile string `toml:"worker_key_file"` // the workers' API key: sent instead of the client's, and with scrapes
	WorkerKeyEnv  string `toml:"worker_key_env"`  // or this variable holds it
	TLSCAFile     string `toml:"tls_ca_file"`     // PEM of who signs the workers' certificates; "" = the system's

	Subset int `toml:"subset"` // of how many workers each of the routers that share makes use; 0 = of all

	MaxInFlight int           `toml:"max_in_flight"`    // requests at a time at one worker; 0 = no limit
	MaxWait     float64       `toml:"max_wait_seconds"` // of prefill queued at one worker; 0 = no bound
	MaxKVUse    float64       `toml:"max_kv_use"`       // share of its KV for requests in flight; 0 = no bound
	Overflow    int           `toml:"overflow_status"`  // 429 or 503, of what no worker has room for
	RetryBudget float64       `toml:"retry_budget"`     // repeats, as a share of requests, beside 10 a second
	Continue    int           `toml:"continue"`         // times another worker goes on with a broken stream; 0 = never
	Panic       bool          `toml:"panic"`            // no worker is up: send to one all the same, instead of 503
	SlowStart   time.Duration `toml:"slow_start"`       // for how long a worker that is back gets less than its share

	HealthInterval time.Duration `toml:"health_interval"`  // between probes of a worker's /health
	ScrapeInterval time.Duration `toml:"scrape_interval"`  // between reads of a worker's /metrics
	ConnectTimeout time.Duration `toml:"connect_timeout"`  // for a worker to accept a connection
	HeaderTimeout  time.Duration `toml:"header_timeout"`   // from the request to the first byte: queue and prefill
	FirstByteRetry time.Duration `toml:"first_byte_retry"` // no first byte by then: try another worker, once; 0 = never
	StreamTimeout  time.Duration `toml:"stream_timeout"`   // between two chunks of an answer
	DownGrace      time.Duration `toml:"down_grace"`       // its worker is down and silent for so long: given up
	PauseMax       time.Duration `toml:"pause_max"`        // a worker is paused for so long: that is reported

	HandOverBytes int `toml:"hand_over_bytes"` // of memory for conversations that a drain can move; 0 = none

	Weights        string `toml:"weights"`         // any | one: does a session keep the version of its workers' weights?
	WorkerSessions string `toml:"worker_sessions"` // auto | on | off: do the workers keep SageMaker sessions?
	InvocationPath string `toml:"invocation_path"` // where the workers take what comes in on SageMaker's paths
	ClientRank     bool   `toml:"client_rank"`     // a client's X-data-parallel-rank holds; else it is dropped

	KVEvents       string `toml:"kv_events"`        // default of its workers' kv_events; see Worker
	KVEventsReplay string `toml:"kv_events_replay"` // likewise

	KVHints  string `toml:"kv_hints"`  // fetch: workers copy KV of each other | pass: clients may say so | ""
	KVSource string `toml:"kv_source"` // default of its workers' kv_source

	SharedTokens int     `toml:"shared_kv_tokens"` // tokens in a tier of all workers; 0 = of [kv_cache], -1 = none
	CPURate      float64 `toml:"cpu_kv_rate"`      // tokens of KV a second that come from a worker's CPU memory
	SharedRate   float64 `toml:"shared_kv_rate"`   // and from the shared tier

	PrefillTokensPerSecond float64 `toml:"prefill_tokens_per_second"` // first guess of a worker's speed; learnt after that

	Tokens Tokens `toml:"tokens"`
	Queue  Queue  `toml:"queue"`

	Disaggregation Disaggregation `toml:"disaggregation"`
	Adapters       Adapters       `toml:"adapters"`
}

// Shadow is a strategy that also decides each request of a pool. Its decisions are only counted. Its choices are
// compared and go nowhere.
type Shadow struct {
	Strategy string  `toml:"strategy"` // a built-in or a key of Config.Strategies
	Share    float64 `toml:"share"`    // of the requests that it sees
}

// Canary is a strategy that serves a part of a pool's requests. A request goes to the first canary that takes it. One
// of Percent, Header and Key selects those requests.
type Canary struct {
	Strategy string  `toml:"strategy"` // a built-in or a key of Config.Strategies
	Percent  float64 `toml:"percent"`  // of the sessions, and of the requests that have none
	Header   string  `toml:"header"`   // of the request, as "x-canary=1"
	Key      string  `toml:"key"`      // the name of the client's key
}

// Tokens is how the router gets the token ids of a prompt, for a strategy that goes by what the workers hold, as
// kvaware.
type Tokens struct {
	Budget     time.Duration `toml:"budget"`      // of a request's time, from its arrival; 0 = only ids that are known
	CacheBytes int           `toml:"cache_bytes"` // of memory for the ids of texts seen
	Learn      bool          `toml:"learn"`       // ask workers for the ids in their answers, which clients do not see
}

// Worker is one vLLM instance.
type Worker struct {
	URL          string            `toml:"url"`           // http://HOST:PORT[/PATH]
	ID           string            `toml:"id"`            // for clients and metrics; default of the URL, as w-e25838
	MetricsURL   string            `toml:"metrics_url"`   // default URL/metrics
	KVTokens     int               `toml:"kv_tokens"`     // KV cache in tokens, of one engine; 0 = from its /metrics
	CPUTokens    int               `toml:"cpu_kv_tokens"` // KV that its CPU memory keeps beside that, in tokens; 0 = none
	Weight       float64           `toml:"weight"`        // share relative to the other workers
	Cost         float64           `toml:"cost"`          // price beside the other workers, for strategies
	DataParallel int               `toml:"data_parallel"` // engines behind url, each routed to alone; 0 = as it reports
	Labels       map[string]string `toml:"labels"`        // for strategies, as tier = "batch"; see MaxLabels
	Drain        bool              `toml:"drain"`         // no new requests go there; a restart keeps that
	Role         string            `toml:"role"`          // prefill | decode | both, where the pool has disaggregation

	KVEvents       string `toml:"kv_events"`        // where it publishes KV events: tcp://, ipc://, auto; "" = as the pool
	KVEventsReplay string `toml:"kv_events_replay"` // where missed ones are asked for; "" = as the pool
	KVSource       string `toml:"kv_source"`        // where others copy its KV from: tcp://; "" = as the pool
}

// RoleOf returns the role of a worker: its own, or that of its label.
func (w *Worker) RoleOf() string {
	if label := w.Labels[RoleLabel]; w.Role == RoleBoth && (label == RolePrefill || label == RoleDecode) {
		return label
	}
	return w.Role
}

// Equal reports whether both workers are configured alike.
func (w Worker) Equal(other Worker) bool { return reflect.DeepEqual(w, other) }

// Strategy is a module of one's own, or options and limits for the built-in of that name.
type Strategy struct {
	Path        string         `toml:"path"`         // the module; empty for a built-in
	SHA256      string         `toml:"sha256"`       // of the module; another file is refused; empty = any
	PullSecret  string         `toml:"pull_secret"`  // a Docker config.json for a module in a registry; empty = anonymous
	Options     map[string]any `toml:"options"`      // scalars
	Allow       []string       `toml:"allow"`        // what the module may use: kv, headers:x-tenant
	Fuel        int64          `toml:"fuel"`         // steps per pick
	PickTimeout time.Duration  `toml:"pick_timeout"` // of a pick, by the clock
	MemoryMB    int            `toml:"memory_mb"`    // of one instance, in MiB
	OnFailure   string         `toml:"on_failure"`   // fallback | reject: where it names no worker; "" = by kind
}

// Activation is a strategy by which the admin API has replaced the one that the file names for a pool.
type Activation struct {
	Strategy  string    `toml:"strategy"`
	InsteadOf string    `toml:"instead_of"` // what the file named then; once it names another, the file's word holds
	Since     time.Time `toml:"since"`
}

// Ended is an activation that is not in force.
type Ended struct {
	Pool string
	Activation
	NoModule bool // its module is gone; else the file names another strategy than it did
}

// Builtins names the strategies that need no path. conf imports nothing of ours, so package daemon sets it from
// plugins.Names before a file is read.
var Builtins []string

// Default is the configuration before the file is read. It has no pool yet.
func Default() *Config {
	return &Config{Cache: defaultCache(), History: defaultHistory(), Tracing: defaultTracing(),
		Sessions: defaultSessions(), KVCache: defaultKVCache(), LMCache: defaultLMCache(), Server: Server{
			Listen:         "127.0.0.1:8080",
			Admin:          "127.0.0.1:9090",
			MaxConnections: 20_000,
			MaxInFlight:    16_384,
			MaxHeaderBytes: 32 << 10, // as nginx takes: cookies and tokens that name groups are 8 to 20 KiB
			MaxBodyBytes:   1 << 30,  // payloads that open a session have 100 MB and more; what is over BufferBody is streamed
			BufferBody:     8 << 20,
			OverflowBytes:  2 << 30, // one client has half: one of MaxBodyBytes, or a hundred of a few photos
			ReadTimeout:    20 * time.Second,
			WriteTimeout:   30 * time.Second,
			CORSOrigins:    []string{"*"}, // as vLLM
			RootPaths:      []string{},
			DeadlineHeader: []string{},
			WebsocketIdle:  10 * time.Minute,
			IdleTimeout:    90 * time.Second, // above the 60 s of common load balancers, so that we are never first to close
			DrainTimeout:   30 * time.Second, // a pod's default grace period
			DecisionsBytes: 16 << 20,         // some 15,000 requests to 16 workers
			Explain:        true,
			LogFormat:      "text",
			WorkerMetrics:  "all",
			LogLevel:       "info",
		}}
}

// DefaultPool is a pool before the file is read.
func DefaultPool() Pool {
	return Pool{
		Models:                 []string{"*"},
		Strategy:               Chain{"prefixaware"},
		RetryBudget:            0.2,
		Overflow:               429,
		SlowStart:              10 * time.Second,
		HealthInterval:         2 * time.Second,
		ScrapeInterval:         time.Second,
		ConnectTimeout:         time.Second,
		HeaderTimeout:          10 * time.Minute, // 1 M tokens at 15,000/s take 67 s; the rest is queueing
		DownGrace:              20 * time.Second, // one that shuts down still answers what it has
		PauseMax:               10 * time.Minute, // a sync of weights takes seconds or minutes
		StreamTimeout:          10 * time.Minute, // parsers of tools hold a long call until it is whole
		Weights:                "any",
		WorkerSessions:         "auto",
		InvocationPath:         "/invocations",
		PrefillTokensPerSecond: 15000, CPURate: 120_000, SharedRate: 40_000,
		Tokens: Tokens{Budget: 50 * time.Millisecond, CacheBytes: 64 << 20, Learn: true},
		Queue:  defaultQueue(),

		Disaggregation: Disaggregation{Threshold: 4096, Rule: RuleSooner, BootstrapPort: 8998, Same: []string{},
			Far: time.Second},
	}
}

// DefaultWorker is a worker before the file is read.
func DefaultWorker() Worker { return Worker{Weight: 1, Cost: 1, Role: RoleBoth} }

// WorkerAt returns the worker at a URL with all else by default, for sources that know no more than addresses. Its role
// is [Disaggregation.FoundRole].
func WorkerAt(url string) Worker {
	w := DefaultWorker()
	w.URL, w.Role = url, ""
	w.complete()
	return w
}

// DefaultKey is a client's key before the file is read: it may use every model.
func DefaultKey() Key {
	return Key{Models: []string{"*"}, Priority: []int{-MaxPriority, 0}, Weight: 1, Count: "uncached"}
}

// DefaultStrategy is a strategy before the file is read: the limits of sandboxed code.
func DefaultStrategy() Strategy {
	return Strategy{Fuel: 1_000_000, PickTimeout: 5 * time.Millisecond, MemoryMB: 16}
}

// Serves reports whether one of the pool's patterns fits the model.
func (p *Pool) Serves(model string) bool {
	for _, pattern := range p.Models {
		if fits(pattern, model) {
			return true
		}
	}
	return false
}

// Bounded reports whether something bounds what a worker of the pool has at a time.
func (p *Pool) Bounded() bool { return p.MaxInFlight > 0 || p.MaxWait > 0 || p.MaxKVUse > 0 }

// Queues reports whether requests of the pool may wait in the router.
func (p *Pool) Queues() bool {
	return p.Queue.MaxRequests > 0 && (p.Bounded() || p.Queue.WaitEmpty > 0)
}

// Holds returns for how long requests wait while no worker is up: those for a model that the pool names. 0 = none does.
func (p *Pool) Holds() time.Duration {
	if !p.Queues() || !p.namesOne() {
		return 0
	}
	return p.Queue.WaitEmpty
}

// namesOne reports whether one of the patterns is a model's name.
func (p *Pool) namesOne() bool {
	return slices.ContainsFunc(p.Models, func(m string) bool { return !strings.HasSuffix(m, "*") })
}

// Names reports whether one of the pool's patterns is just that model.
func (p *Pool) Names(model string) bool {
	for _, pattern := range p.Models {
		if pattern == model && model != "*" {
			return true
		}
	}
	return false
}

// fits is the whole pattern language: a name, or a prefix and a star.
func fits(pattern, model string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(model, prefix)
	}
	return pattern == model
}
