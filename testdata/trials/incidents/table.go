package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	keyA = "aaaaaaaaaaaaaaaaaaaaaaaa"
	keyB = "bbbbbbbbbbbbbbbbbbbbbbbb"

	teams = `
FILE a.key ` + keyA + `
FILE b.key ` + keyB + `
[[keys]]
name = "team-a"
file = "a.key"
[[keys]]
name = "team-b"
file = "b.key"
`
	onePool = `
[[pools]]
name = "main"
models = ["sim"]
`
	pair = `
[[pools]]
name = "large"
models = ["sim"]
[pools.disaggregation]
connector = "nixl"
rule = "threshold"
`
	long = 6000 // words of a prompt for prefillers
)

var pairWorkers = []string{"p1 --connector nixl --role prefill", "d1 --connector nixl --role decode",
	"d2 --connector nixl --role decode"}

var table = []incident{
	{name: "one-tenant-floods", what: "60 requests of one key wait, and 4 of another",
		workers: []string{"w1", "w2"},
		conf: teams + onePool + `max_in_flight = 2
[pools.queue]
wait = "20s"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(60, request{key: keyB, tokens: 400})
			s.wait(1)
			s.ask(4, request{key: keyA, tokens: 20})
			s.wait(4)
			s.about = "r50"
			return nil
		}, says: `
status  WAITS IN THE ROUTER: \d+ of 5000: team-b \d+ \(no worker has room\), team-a \d \(no worker has room\)
status  w1 +full
status! WARNING|NOT READY|POOL DOWN
top     team-b +main +\d+ +0 .*no worker has room
why     waited .* so far in the router's queue, for a worker with room, behind some \d+ others
metrics warmpath_queue_depth\{class="normal",pool="main"\} \d\d
alert   WarmpathQueueFilling
log!    level=ERROR|ejected
`},
	{name: "tokens-limit-too-low", what: "a key's clients send longer prompts than its limit is made for",
		workers: []string{"w1", "w2"},
		conf: teams + `tokens_per_minute = 3000
[[pools]]
name = "main"
models = ["sim"]
max_in_flight = 8
[pools.queue]
wait = "8s"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(12, request{key: keyB, words: 300, tokens: 100})
			s.ask(1, request{key: keyB, words: 3000, tokens: 4000})
			s.wait(11)
			s.ask(6, request{key: keyB, words: 300, tokens: 100})
			s.wait(2)
			s.about = "r19"
			return nil
		}, says: `
status  WARNING key team-b is at its limit: tokens_per_minute = 3000: \d+ of its requests got 429, \d+ wait
status  team-b \d+ \(its key's tokens_per_minute\)
status! no worker has room|refuses requests|team-a
page    key team-b is at its limit.*/api/v1/keys\]
top     its key's tokens_per_minute
why     waited .* for its key's tokens_per_minute
log     a key is at its limit.*key=team-b limit=tokens_per_minute
metrics warmpath_queue_limited\{pool="main"\} [1-9]
client  429 .*has reached its tokens_per_minute of 3000; try again in
alert   WarmpathKeyAtLimit
alert   WarmpathKeyWaits
`},
	{name: "prefiller-hangs", what: "the engine of the only prefiller stands, its health is good",
		workers: pairWorkers, conf: pair + `WORKERS p1 d1 d2
`,
		play: func(s *scene) error {
			s.ask(2, request{words: long})()
			if err := s.fault("p1", "stall"); err != nil {
				return err
			}
			for range 5 {
				s.ask(1, request{words: long})()
			}
			s.wait(3)
			return nil
		}, says: `
status  WARNING p1 ejected: no byte of any answer
status  WARNING no prefiller of large serves: p1 ejected: long prompts are computed where they are answered
status! (?m)^d[12] .*(ejected|no byte|fails)
status! p1 (is )?down|are down
why     prefill +(where it is answered: no prefiller took it|at p1: failed \(p1: timeout\))
log     worker ejected.*worker=p1
log!    level=(WARN|ERROR).*worker=d[12]
metrics warmpath_worker_up\{pool="large",worker="p1"\} 0
metrics warmpath_worker_up\{pool="large",worker="d1"\} 1
client! none|broken|50\d
alert   WarmpathPrefillsFail
alert   WarmpathWorkerDown
`},
	{name: "prefiller-dead", what: "the only prefiller is killed",
		workers: pairWorkers, conf: pair + `WORKERS p1 d1 d2
`,
		play: func(s *scene) error {
			s.ask(2, request{words: long})()
			s.procs["p1"].Stop()
			s.wait(3)
			for range 5 {
				s.ask(1, request{words: long})()
			}
			s.wait(2)
			return nil
		}, says: `
status  WARNING p1 down: /health: dial: connect: connection refused
status  WARNING no prefiller of large serves: p1 down: long prompts are computed
status  role prefill: 0 of 1 up
status! (?m)^d[12] .*(ejected|down|fails)
why     prefill +where it is answered: no prefiller took it
log     worker down.*worker=p1
log     no prefiller computed a prompt.*result=no_prefiller
log!    (?s)no prefiller computed a prompt.*no prefiller computed a prompt.*no prefiller computed a prompt
metrics warmpath_prefills_total\{.*result="no_prefiller"
client! none|broken|50\d
alert   WarmpathPrefillsFail
alert   WarmpathWorkerDown
`},
	{name: "decoder-crash-loop", what: "a decoder is killed every few seconds and comes back, with streams running",
		workers: pairWorkers, conf: pair + `WORKERS p1 d1 d2
`,
		play: func(s *scene) error {
			for range 4 {
				s.ask(4, request{tokens: 60})
				s.wait(1)
				s.procs["d1"].Stop()
				s.wait(1)
				if err := s.start("d1"); err != nil {
					return err
				}
				s.wait(3)
			}
			return nil
		}, says: `
status  WARNING d1 keeps restarting: 4 restarts in 5 min: its own log says why it ends
status  (?m)^d1 \(decode\) .*4 restarts in 5 min
status! WARNING .*(d2|p1)
top     (?m)^d1 .* 4, \d+s ago
log     worker restarted: its cache is empty.*worker=d1
log!    worker=(d2|p1).*(down|ejected)
metrics warmpath_worker_restarts_total\{pool="large",worker="d1"\} 4
alert   WarmpathWorkerRestarts
alert?  WarmpathWorkerDown
alert?  WarmpathRetries
`},
	{name: "adapter-fails-everywhere", what: "an adapter's files are missing at all workers",
		workers: []string{"w1 --max-loras 2", "w2 --max-loras 2"},
		conf: `[[pools]]
name = "main"
[pools.adapters]
source = "/adapters/{name}"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			for range 3 {
				s.ask(1, request{model: "missing-sql"})()
			}
			s.wait(2)
			return nil
		}, says: `
status  WARNING workers of main refuse adapters: missing-sql by w1, missing-sql by w2: their.*source of
page    workers of main refuse adapters
log     an adapter was not loaded: the worker refuses it.*worker=w1 adapter=missing-sql status=404
log     no worker is left for the request.*reason=adapter_not_loaded
metrics warmpath_adapter_calls_total\{.*result="refused"\} 2
client  404 .*missing-sql.*is served by no worker
status! ejected|(?m)^w\d .*fails
`},
	{name: "alias-gone", what: "the workers come back with another model's name, and an alias leads to the old one",
		workers: []string{"w1 --model sim-v2", "w2 --model sim-v2"},
		conf: `[[models]]
name = "chat"
to = [{ model = "sim" }]
[[pools]]
name = "main"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(3, request{model: "chat"})()
			s.wait(2)
			return nil
		}, says: `
status  WARNING alias chat leads to sim, which no worker lists: .*the workers list sim-v2: correct to of \[\[models\]\]
why     model +sim, asked for as chat
log     an alias leads to a model that no worker lists.*chat leads to sim
client  404 .*chat.*served by no worker
status! w\d fails|ejected
`},
	{name: "redis-hangs", what: "two routers share limits by a Redis that stops to answer",
		workers: []string{"w1", "w2"},
		conf: `[cache]
redis = "redis://@redis/0"
[history]
name = "ra"
` + teams + `requests_per_minute = 600
[[pools]]
name = "main"
models = ["sim"]
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(3, request{key: keyB})()
			s.stopRedis()
			for range 8 {
				s.ask(3, request{key: keyB})()
				s.wait(1)
			}
			return nil
		}, says: `
status  WARNING Redis of \[cache\] lost: the memory .* and it gives out an equal part of each key's limits
status  WARNING Redis of \[history\] lost: the routers hear nothing of one another
log     the limits of keys are not shared
log!    (?s)tier: Redis is lost.*tier: Redis is lost
metrics warmpath_cache_l2_up 0
client! 429|50\d|none| [1-9]\.\ds
alert   WarmpathStoreDown
`},
	{name: "canary-rejects", what: "a canary turns its share of the requests away",
		workers: []string{"w1", "w2"},
		conf: `[strategies.rejecting]
path = "DIR/reject.wasm"
[[pools]]
name = "main"
models = ["sim"]
[[pools.canary]]
strategy = "rejecting"
percent = 30.0
WORKERS w1 w2
`,
		play: func(s *scene) error {
			for range 5 {
				s.ask(8, request{})()
				s.wait(1)
			}
			s.wait(2)
			return nil
		}, says: `
status  WARNING canary rejecting of main turns requests away: \d+ that the pool.*take it out of the file.* why r\d+
status  canary rejecting \(30 %\)
metrics warmpath_requests_total\{code="429",model="sim",pool="main",strategy="rejecting",worker=""\} \d+
client  429 .*rejected_by_strategy
status! refuses requests
alert   WarmpathStrategyRejects
`},
	{name: "zero-never-comes", what: "a pool at zero workers whose scaler does not answer",
		conf: onePool + `[pools.queue]
wait_empty = "60s"
wake_url = "http://127.0.0.1:1/wake"
[[pools.workers]]
id = "w1"
url = "http://127.0.0.1:1"
`,
		play: func(s *scene) error {
			s.ask(3, request{patience: time.Minute})
			s.wait(8)
			s.about = "r2"
			return nil
		}, says: `
status  (?m)^ready
status  AT ZERO: no worker is up, and requests wait for one, 1m0s at most
status  requests of main wait for a worker: 3, .*wake_url does not take the call: .*connection refused
why     waited .* for a worker: none is up
why!    with room
top     waits +for a worker: none is up
log     wake_url does not take the call.*connection refused
metrics warmpath_pool_rests\{pool="main"\} 1
log!    its requests get 503
alert   WarmpathQueueFilling
`},
	{name: "disk-full", what: "the disk of the access log is full",
		workers: []string{"w1"},
		conf: `[server]
access_log = "/dev/full"
[[pools]]
name = "main"
WORKERS w1
`,
		play: func(s *scene) error {
			s.ask(3, request{})()
			s.wait(3)
			s.ask(3, request{})()
			s.wait(3)
			return nil
		}, says: `
status  WARNING lines of the access log lost: \d+: free the disk, or correct server.access_log
log     the access log cannot be written.*no space left on device
metrics warmpath_access_log_lost_lines_total [1-9]
client! 50\d|none
alert   WarmpathAccessLogLost
`},
	{name: "certificate-ends", what: "the clients' certificate ends tomorrow, and one that has ended is put in its place",
		workers: []string{"w1"},
		conf: `[server]
tls_cert_file = "site.pem"
tls_key_file = "site.key"
[[pools]]
name = "main"
WORKERS w1
`,
		before: func(s *scene) error { return s.certificate(time.Hour) },
		play: func(s *scene) error {
			s.wait(2)
			if err := s.certificate(-time.Hour); err != nil {
				return err
			}
			s.wait(4)
			return nil
		}, says: `
status  WARNING certificate ends soon: that of server, .*renew it, no restart is needed
status  WARNING certificate refused: .*expired on .*the one before stays, until
status! NOT READY|w1 (down|fails)
log     the certificate in force stays
metrics warmpath_certificate_refused\{listener="server"\} 1
alert   WarmpathCertificateEnds
alert   WarmpathCertificateRefused
`},
	{name: "hung-prefiller-and-limit", what: "a prefiller hangs, while a key's requests wait for its limit",
		workers: pairWorkers, conf: teams + `requests_per_minute = 12
` + strings.Replace(pair, "[pools.dis", `max_in_flight = 8
[pools.dis`, 1) + `WORKERS p1 d1 d2
`,
		play: func(s *scene) error {
			s.ask(1, request{key: keyA, words: long})()
			if err := s.fault("p1", "stall"); err != nil {
				return err
			}
			s.ask(3, request{key: keyA, words: long})
			s.ask(8, request{key: keyB})
			s.wait(14)
			s.about = "r11"
			return nil
		}, says: `
status  WARNING p1 ejected: no byte of any answer
status  WARNING no prefiller of large serves: p1 ejected
status  WARNING key team-b is at its limit: requests_per_minute = 12: \d wait in the router, whatever room
status! (?m)^d[12] .*(ejected|no byte|fails)|team-a|no worker has room
why     for its key's requests_per_minute
log!    level=(WARN|ERROR).*worker=d[12]
client! none|broken|50\d
alert   WarmpathKeyWaits
alert   WarmpathPrefillsFail
alert   WarmpathWorkerDown
alert?  WarmpathSlowFirstToken
`},
	{name: "fallback-full", what: "an alias whose model is down, and whose fallback is full",
		workers: []string{"b1 --model small"},
		conf: `[[models]]
name = "chat"
to = [{ model = "sim" }]
fallback = "small"
[[pools]]
name = "a"
models = ["sim"]
[[pools.workers]]
id = "a1"
url = "http://127.0.0.1:1"
[[pools]]
name = "b"
models = ["small"]
max_in_flight = 1
[pools.queue]
wait = "2s"
max_requests = 2
WORKERS b1
`,
		play: func(s *scene) error {
			for range 3 {
				s.ask(6, request{model: "chat", tokens: 300})()
			}
			s.wait(1)
			s.about = "r6"
			return nil
		}, says: `
status  WARNING pool a cannot serve: no worker is up; a1 down
status  WARNING pool b refuses requests: \d+ so far.*some \d workers would have had a place
status  pool can(not|'t) serve: a
why     model +small, asked for as chat, as its fallback \(down\), pool b
why     waited +not at all: it was turned away at once, behind some 2 others
why     has no room
log     its requests get 503.*pool=a
log     the pool refuses requests.*pool=b
metrics warmpath_model_fallbacks_total\{.*reason="down"
client  429 .*no more requests may wait here
client! 503|404
alert   WarmpathPoolEmpty
alert   WarmpathShedding
alert   WarmpathWorkerDown
`},
	{name: "adapter-nobody", what: "an adapter that no worker can load, one of them for want of LoRA",
		workers: []string{"w1", "w2 --max-loras 2"},
		conf: `[[pools]]
name = "main"
[pools.adapters]
source = "/adapters/{name}"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			for range 2 {
				s.ask(1, request{model: "missing-law"})()
				s.ask(1, request{model: "sql"})()
			}
			s.wait(2)
			s.about = "r1"
			return nil
		}, says: `
status  WARNING workers of main refuse adapters: missing-law by w1, missing-law by w2, sql by w1: .*with --enable-lora
why     tried +w1: adapter_not_loaded
why     tried +w2: adapter_not_loaded
log     worker=w1 adapter=missing-law status=404
client  404 .*missing-law
client! 404 .*"sql.. is served by no worker
status! ejected
alert?  WarmpathRetries
`},
	{name: "canary-traps-in-queue", what: "a canary that traps, while requests wait for a worker",
		workers: []string{"w1", "w2", "w3", "w4"},
		conf: `[strategies.trapping]
path = "DIR/trap.wasm"
[[pools]]
name = "main"
models = ["sim"]
max_in_flight = 1
[pools.queue]
wait = "5s"
[[pools.canary]]
strategy = "trapping"
percent = 50.0
WORKERS w1 w2 w3 w4
`,
		play: func(s *scene) error {
			s.ask(30, request{tokens: 100})
			s.wait(6)
			s.ask(8, request{tokens: 400})
			s.wait(2)
			return nil
		}, says: `
status  WARNING canary trapping of main (fails|set aside)
status  WARNING pool main refuses requests: \d+ so far
status  WAITS IN THE ROUTER: \d of 5000: default \d \(no worker has room\)
status! strategy of main set aside
log     strategy failed; the fallback answers.*strategy=trapping
log!    strategy=prefixaware
client  429 .*queue_wait
client! 50\d|rejected_by_strategy
alert   WarmpathQueueFilling
alert?  WarmpathFallbacks
alert?  WarmpathShedding
alert?  WarmpathStrategySetAside
`},
	{name: "fence-drained", what: "all workers of a key's label drain, the others serve",
		workers: []string{"w1", "w2"},
		conf: strings.Replace(teams, `file = "a.key"
`, `file = "a.key"
workers = "for=a"
`, 1) + onePool + `[[pools.workers]]
id = "w1"
url = "http://@w1"
labels = { for = "a" }
[[pools.workers]]
id = "w2"
url = "http://@w2"
`,
		play: func(s *scene) error {
			s.ask(2, request{key: keyA})()
			s.command("drain", "w1")
			s.wait(1)
			s.ask(3, request{key: keyB})()
			s.ask(3, request{key: keyA})()
			s.wait(2)
			return nil
		}, says: `
status  WARNING no worker for key team-a: w1 draining: its requests get 503, whatever the other workers do: undrain
page    bad: no worker for key team-a
why     decision +none: refused with no_worker
why     w1 .*draining: asked to drain
why!    w2
client  503 .*no worker that this API key may use \(keys.workers\)
log     worker draining.*worker=w1 why="asked to"
status! team-b|no worker is up
alert?  WarmpathErrors
`},
	{name: "zero-and-limit", what: "a pool at zero workers, and a key whose requests wait for its limit beside it",
		conf: teams + `requests_per_minute = 2
[[pools]]
name = "main"
models = ["sim"]
[pools.queue]
wait_empty = "60s"
[[pools.workers]]
id = "w1"
url = "http://127.0.0.1:1"
`,
		play: func(s *scene) error {
			s.ask(3, request{key: keyA, patience: time.Minute})
			s.ask(6, request{key: keyB, patience: time.Minute})
			s.wait(5)
			s.about = "r1"
			return nil
		}, says: `
status  AT ZERO
status  requests of main wait for a worker: 5, 1m0s each at most
status  WARNING key team-b is at its limit: requests_per_minute = 2: .*\d wait in the router
status  team-b \d \(its key's requests_per_minute\)
status  team-a 3 \(no worker is up\)
why     for a worker: none is up
metrics warmpath_queue_limited\{pool="main"\} [1-9]
status! no worker has room
alert   WarmpathKeyWaits
alert   WarmpathQueueFilling
alert?  WarmpathKeyAtLimit
`},
	{name: "module-reload", what: "a reload names a module in a registry that does not answer",
		workers: []string{"w1"},
		conf: onePool + `WORKERS w1
`,
		play: func(s *scene) error {
			err := s.reload("models = [\"sim\"]\n", `models = ["sim"]
strategy = "nearest"
[strategies.nearest]
path = "oci://127.0.0.1:1/acme/nearest@sha256:`+strings.Repeat("0a", 32)+"\"\n")
			if err != nil {
				return err
			}
			s.ask(3, request{})()
			s.wait(5)
			return nil
		}, says: `
status  WARNING file refused: the configuration in force stays: line 8: .*cannot be pulled: the registry does not answer
status  CONFIGURATION REFUSED \d+s ago
log     reload refused: the configuration in force stays
metrics warmpath_config_last_reload_successful 0
client! 50\d|none
why     by prefixaware
alert   WarmpathConfigRefused
`},
	{name: "tier-gone", what: "the Redis behind the workers' KV cache is gone, while they store",
		workers: []string{"w1"},
		conf: `[kv_cache]
resp = "@kv"
max_bytes = 67108864
[kv_cache.l2]
enabled = true
backend = "redis"
url = "redis://@redis/0"
[[pools]]
name = "main"
WORKERS w1
`,
		play: func(s *scene) error {
			store := func(from int) error {
				for i := range 20 {
					if err := s.store(fmt.Sprintf("vllm@sim@1@0@%032x@half", from+i)); err != nil {
						return err
					}
				}
				return nil
			}
			if err := store(0); err != nil {
				return err
			}
			s.wait(1)
			s.procs["redis"].Stop()
			for n := range 4 {
				if err := store(100 * n); err != nil {
					return err
				}
				s.wait(1)
			}
			return nil
		}, says: `
status  WARNING L2 of the KV cache lost: .*does not answer: its values are misses
log     a server of the KV cache's L2 does not answer
log!    (?s)L2 does not answer.*L2 does not answer
metrics warmpath_kv_l2_up\{.*\} 0
status! Redis of|not ready|NOT READY
alert   WarmpathStoreDown
`},
	{name: "router-partitioned", what: "one of two routers does not reach the Redis that they share",
		workers: []string{"w1", "w2"},
		conf: `[history]
redis = "redis://@relay/0"
name = "ra"
` + teams + `requests_per_minute = 600
[[pools]]
name = "main"
models = ["sim"]
WORKERS w1 w2
`,
		play: func(s *scene) error {
			if err := s.another("@relay", "@redis", "\"ra\"", "\"rb\""); err != nil {
				return err
			}
			s.ask(3, request{key: keyB})()
			s.relay.Store(true)
			for range 8 {
				s.ask(3, request{key: keyB})()
				s.wait(1)
			}
			return nil
		}, says: `
status  WARNING Redis of \[history\] lost: the routers hear nothing of one another
log     history: Redis is lost: routers receive nothing from each other
metrics warmpath_history_connected 0
status! WARNING .*w[12] |limits
client! 429|50\d|none
alert   WarmpathStoreDown
`},
	{name: "only-worker-crashes", what: "the only worker of a pool ends again and again, and sessions are kept there",
		workers: []string{"w1"},
		conf: onePool + `strategy = "session"
max_in_flight = 4
[pools.queue]
wait = "10s"
WORKERS w1
`,
		play: func(s *scene) error {
			for range 4 {
				s.ask(6, request{tokens: 200})
				s.wait(1)
				s.procs["w1"].Stop()
				s.wait(1.5)
				if err := s.start("w1"); err != nil {
					return err
				}
				s.wait(2)
			}
			return nil
		}, says: `
status  WARNING w1 keeps restarting: 4 restarts in 5 min
top     (?m)^w1 .* 4, \d+s ago
log     its requests get 503.*pool=main
log     worker broke off in the middle of an answer
metrics warmpath_worker_restarts_total\{pool="main",worker="w1"\} 4
client  broken
client  503
status! strategy of main set aside
alert   WarmpathWorkerRestarts
alert?  WarmpathErrors
alert?  WarmpathRetries
alert?  WarmpathShedding
alert?  WarmpathPoolEmpty
alert?  WarmpathWorkerDown
alert?  WarmpathQueueFilling
`},
	{name: "secret-vanished", what: "the file of a key is gone at a reload, and so is that of the workers' key",
		workers: []string{"w1 --api-key worker-key-0001"},
		conf: teams + onePool + `worker_key_file = "w.key"
FILE w.key worker-key-0001
WORKERS w1
`,
		play: func(s *scene) error {
			s.ask(2, request{key: keyB})()
			s.conf = strings.NewReplacer("FILE w.key worker-key-0001", "", "FILE b.key "+keyB, "").Replace(s.conf)
			os.Remove(filepath.Join(s.dir, "w.key"))
			os.Remove(filepath.Join(s.dir, "b.key"))
			if err := s.reload("models = [\"sim\"]", "models = [\"sim*\"]"); err != nil {
				return err
			}
			s.ask(3, request{key: keyB})()
			s.wait(2)
			return nil
		}, says: `
status  WARNING file refused: .*keys\[1\].file: stat .*b.key: no such file or directory; put the key
status  pools\[0\].worker_key_file: stat .*w.key: no such file or directory
log     reload refused: the configuration in force stays
client! 401|50\d|none
status! refuse the key
alert   WarmpathConfigRefused
`},
	{name: "budget-and-full-queue", what: "a key's tokens are used up, while another one's requests fill the queue",
		workers: []string{"w1"},
		conf: teams + `tokens_per_minute = 2000
[[pools]]
name = "main"
models = ["sim"]
max_in_flight = 2
[pools.queue]
wait = "6s"
max_requests = 12
WORKERS w1
`,
		play: func(s *scene) error {
			s.ask(30, request{key: keyA, tokens: 300})
			s.ask(6, request{key: keyB, words: 300, tokens: 200})
			s.wait(3)
			s.about = "r36"
			return nil
		}, says: `
status  WAITS IN THE ROUTER: 12 of 12: team-a \d \(no worker has room\), team-b \d
status  WARNING pool main refuses requests: \d+ so far
log     the pool refuses requests, as its workers are full
client  429 .*no more requests may wait here.*queue_full
client! tokens_per_minute
why     waited .* so far
metrics warmpath_queue_dropped_total\{.*reason="queue_full"\}
alert   WarmpathQueueFilling
alert?  WarmpathShedding
`},
	{name: "prompt-above-limit", what: "a prompt that is longer than its key's limit for a minute, before short ones",
		workers: []string{"w1"},
		conf: teams + `tokens_per_minute = 2000
[[pools]]
name = "main"
models = ["sim"]
max_in_flight = 8
[pools.queue]
wait = "10s"
WORKERS w1
`,
		play: func(s *scene) error {
			s.ask(1, request{key: keyB, words: long})()
			s.ask(2, request{key: keyB, words: long})
			s.ask(3, request{key: keyB})
			s.wait(4)
			s.about = "r2"
			return nil
		}, says: `
status  WARNING key team-b is at its limit: tokens_per_minute = 2000: 3 of its requests got 429
log     a key is at its limit.*key=team-b limit=tokens_per_minute
why     decision +none: refused with rate_limit_exceeded
client  429 .*needs at least \d+ tokens.*retrying will not help: shorten the prompt or lower max_tokens
client! 429 .*retry-after=[1-9]
client  200
status! no worker has room
alert?  WarmpathKeyAtLimit
`},
	{name: "worker-hangs", what: "the engine of one of two workers stands, its health is good",
		workers: []string{"w1", "w2"},
		conf: onePool + `WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(4, request{})()
			if err := s.fault("w1", "stall"); err != nil {
				return err
			}
			s.ask(4, request{patience: 30 * time.Second})()
			s.wait(6)
			for range 6 {
				s.ask(2, request{})()
				s.wait(1)
			}
			return nil
		}, says: `
status  WARNING w1 ejected: no byte of any answer, nor a token for the router itself
status  (?m)^w1 +ejected
status! (?m)^w2 .*(ejected|no byte)
why     decision +w2
why     w1 .*ejected: no byte of any answer
log     worker ejected.*worker=w1
metrics warmpath_worker_up\{pool="main",worker="w1"\} 0
client! (?m)^r([9]|1\d|20) ([1-9]|\d\d)\.
alert   WarmpathWorkerDown
`},
}
