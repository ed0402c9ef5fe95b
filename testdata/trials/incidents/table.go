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

	adminToken = "tttttttttttttttttttttttt" // of routers that have one
	bearer     = "Authorization: Bearer " + adminToken

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
log     requests of a key get 429 for its limit.*key=team-b limit=tokens_per_minute
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
status  WARNING no prefiller of large serves: p1 ejected: no byte of any answer.*: long prompts are computed
status! (?m)WARNING p1|to refuse nothing|^d[12] .*(ejected|no byte|fails)
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
status  WARNING no prefiller of large serves: p1 down: /health: dial: connect: connection refused: long prompts
status! WARNING p1|to refuse nothing
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
log     the new TLS certificate is not used, the old one stays
log!    (?s)site.pem\\" expired.*site.pem\\" expired
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
			s.ask(7, request{key: keyB})
			s.wait(.5)
			s.ask(1, request{key: keyB})
			s.wait(13.5)
			s.about = "r12"
			return nil
		}, says: `
status  WARNING no prefiller of large serves: p1 ejected: no byte of any answer
status! WARNING p1
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
percent = 100.0
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
alert   WarmpathKeyWithoutWorkers
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
status  WARNING file refused: .*stays: line 9: strategies.nearest: .*cannot be pulled: the registry
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
why!    turned away at once
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
status  WARNING requests of key team-b are longer than its limit: tokens_per_minute = 2000: 3 .*, of which 3 need more
status! team-b is at its limit
log     requests of a key get 429 for its limit.*key=team-b limit=tokens_per_minute
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
	{name: "drain-beside-paused", what: "a worker drains with hand-over, while another one's trainer has paused it",
		workers: []string{"w1 --dev", "w2 --dev", "w3 --dev"},
		conf: onePool + `continue = 1
hand_over_bytes = 67108864
pause_max = "10s"
WORKERS w1 w2 w3
`,
		play: func(s *scene) error {
			s.ask(12, request{words: 400})()
			if err := s.order("w2", "/pause?mode=keep"); err != nil {
				return err
			}
			s.wait(4)
			done := s.ask(6, request{tokens: 500, patience: 40 * time.Second})
			s.wait(.5)
			s.does("drain", "w1", "--hand-over", "--within", "10s")
			s.ask(4, request{})()
			done()
			s.wait(10)
			return nil
		}, says: `
status  (?m)^w1 +draining .*asked to drain
status  (?m)^w2 +paused
status  WARNING paused for 1\ds: w2: .*POST /resume to each
status! WARNING .*w[13]|NOT READY|paused for 0s|their requests wait
why     decision +w[13]
log     worker paused: it holds its requests.*worker=w2
log     conversations have moved.*worker=w1 moved=[1-9]\d* .*failed=0
log     another worker goes on with a stream.*worker=w1 next=w3
log     worker is still paused.*worker=w2 for=10s run="curl -X POST http
log!    its requests get 503
client  conversations and 2 requests move to other workers within 10s
client! none|broken|50\d
metrics warmpath_conversation_moves_total\{pool="main",result="moved"\} [1-9]
alert?  WarmpathWorkerDown
alert?  WarmpathRetries
`},
	{name: "only-paused-is-left", what: "one of two workers drains with hand-over, and the other one is paused",
		workers: []string{"w1 --dev", "w2 --dev"},
		conf: onePool + `hand_over_bytes = 67108864
continue = 1
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(6, request{words: 400})()
			if err := s.order("w2", "/pause?mode=keep"); err != nil {
				return err
			}
			s.wait(4)
			s.ask(2, request{tokens: 500, patience: 40 * time.Second})
			s.wait(.5)
			s.does("drain", "w1", "--hand-over", "--within", "5s")
			s.ask(3, request{patience: 40 * time.Second})
			s.wait(9)
			return nil
		}, says: `
status  (?m)^ready
status  PAUSED: no worker is up, and requests wait for one, 10m0s at most
status  pool main .* 0 of 2 up
status  (?m)^w1 +draining .*asked to drain
status  (?m)^w2 +paused
status! cannot serve|NOT READY
why     decision +w2
why     answer +under way for
why     w1 .*draining: asked to drain
log     the pool has no worker that is up: its requests go to those that are paused
log!    get 503
metrics warmpath_pool_ready\{pool="main"\} 1
metrics warmpath_pool_rests\{pool="main"\} 1
client! 50\d|none|broken
alert?  WarmpathSlowFirstToken
`},
	{name: "registration-ends", what: "the registration of a pool's only worker ends while it has streams",
		workers: []string{"w1"},
		conf: `[server]
admin_token_file = "admin.token"
FILE admin.token ` + adminToken + `
[[pools]]
name = "main"
models = ["sim"]
workers = []
`,
		play: func(s *scene) error {
			s.does("worker", "add", "http://"+s.addrs["w1"], "--id", "w1", "--ttl", "6s")
			s.wait(3)
			s.ask(2, request{tokens: 700})
			s.wait(6)
			s.ask(2, request{})()
			s.wait(3)
			return nil
		}, says: `
status  WARNING pool main cannot serve: no worker is up; its sources name no worker, and no registration is in force
status  (?m)^NOT READY
why     answer +200
log     a worker has registered.*worker=w1 ttl=6s
log     the registration of a worker has ended, since it was not renewed: it gets no new request.*worker=w1
log     worker removed.*worker=w1
log!    (?s)max_connections is lowered.*max_connections is lowered
client  warning: server.state_file is not set
client  (?m)^r1 .* 200$
client  (?m)^r2 .* 200$
client  (?m)^r3 .* 503 .*no_worker
client! broken|none
alert   WarmpathPoolEmpty
alert?  WarmpathErrors
`},
	{name: "trainer-dies-in-pause", what: "a trainer pauses all workers, and ends before it has them go on",
		workers: []string{"w1 --dev", "w2 --dev"},
		conf: `[server]
admin_token_file = "admin.token"
FILE admin.token ` + adminToken + onePool + `pause_max = "10s"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(4, request{})()
			s.ask(2, request{tokens: 400, patience: time.Minute})
			s.wait(1)
			if err := s.order("admin", "/api/v1/pools/main/each?path=/pause%3Fmode=keep"); err != nil {
				return err
			}
			s.ask(3, request{patience: time.Minute})
			s.wait(13)
			return nil
		}, says: `
status  WARNING paused for 1\ds: w1, w2: what paused them may have ended.*curl .*Authorization.*each\?path=/resume
status  PAUSED: no worker is up, and requests wait for one
status  (?m)^w1 +paused
status! cannot serve|NOT READY|AT ZERO|lack KV|to refuse nothing
page    warn: paused for 1\ds: w1, w2
why     answer +under way for
log     worker paused.*worker=w1
log     worker is still paused.*worker=w2 for=10s
log!    get 503
metrics warmpath_pool_ready\{pool="main"\} 1
metrics warmpath_pool_rests\{pool="main"\} 0
client! 50\d|none|broken
alert   WarmpathPoolEmpty
alert?  WarmpathWorkerDown
alert?  WarmpathSlowFirstToken
`},
	{name: "continued-twice", what: "the worker of a stream dies, and the next one is drained with hand-over",
		workers: []string{"w1", "w2", "w3"},
		conf: onePool + `continue = 2
WORKERS w1 w2 w3
`,
		play: func(s *scene) error {
			done := s.ask(1, request{tokens: 600, patience: 40 * time.Second})
			s.wait(2)
			if err := s.killBusy(); err != nil {
				return err
			}
			s.wait(2)
			for _, w := range []string{"w1", "w2", "w3"} { // the one that has the stream now
				if strings.Contains(s.command("why", "r1"), "decision      "+w) {
					s.does("drain", w, "--hand-over", "--within", "5s")
				}
			}
			done()
			s.wait(1)
			return nil
		}, says: `
status  WARNING w\d down: /health: dial: connect: connection refused
status  (?m)^w\d +draining .*asked to drain
why     tried before +w\d: broken after
why     ended: continued
log     worker broke off in the middle of an answer.*id=r1
log     (?s)another worker goes on with a stream.*another worker goes on with a stream
log!    no other worker goes on
metrics warmpath_continuations_total\{pool="main",result="done"\} 2
client  (?m)^r1 .* 200$
client! broken|50\d
alert   WarmpathWorkerDown
`},
	{name: "continued-too-often", what: "a stream went on at a second worker, which dies too: more than continue allows",
		workers: []string{"w1", "w2", "w3"},
		conf: onePool + `continue = 1
WORKERS w1 w2 w3
`,
		play: func(s *scene) error {
			done := s.ask(1, request{tokens: 600, patience: 40 * time.Second})
			s.wait(2)
			for range 2 {
				if err := s.killBusy(); err != nil {
					return err
				}
				s.wait(2.5)
			}
			done()
			s.wait(1)
			return nil
		}, says: `
status  WARNING 2 workers down: w\d, w\d
why     tried before +w\d: broken after
why     ended: broken
log     another worker goes on with a stream.*id=r1
log     a stream ends with an error: no other worker goes on with it.*id=r1 why=broken
metrics warmpath_continuations_total\{pool="main",result="broken"\} 1
client  (?m)^r1 .* broken .*worker_broke_off
status! NOT READY|ejected
alert   WarmpathWorkerDown
`},
	{name: "new-weights-at-one", what: "the one worker with the weights that requests ask for is killed",
		workers: []string{"w1 --dev", "w2 --dev"},
		conf: onePool + `weights = "one"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			for name, version := range map[string]string{"w1": "13", "w2": "14"} {
				if err := s.order(name, "/update_weight_version", `{"new_version":"`+version+`"}`); err != nil {
					return err
				}
			}
			s.wait(3)
			if err := s.order("w2", "/update_weight_version", `{"new_version":"12"}`); err != nil {
				return err
			}
			s.wait(3)
			s.ask(4, request{header: "X-Warmpath-Weights-Min: 13"})()
			s.procs["w1"].Stop()
			s.wait(3)
			s.ask(3, request{header: "X-Warmpath-Weights-Min: 13"})()
			s.wait(2)
			return nil
		}, says: `
status  WARNING w1 down: /health: dial: connect: connection refused
status! WARNING .*w2
why     decision +none: refused with old_weights
log     worker's weights.*worker=w1 version=13
log     worker has older weights than before.*worker=w2 versions=.*14.*12
metrics warmpath_worker_weights_version\{pool="main",worker="w2"\} 12
client  (?m)^r4 .* 200$
client  (?m)^r7 .* 503 .*old_weights.*retry-after=
client! (?m)^r[1-4] .* 503
alert   WarmpathWorkerDown
alert?  WarmpathErrors
alert?  WarmpathRetries
`},
	{name: "wishes-without-memory", what: "a strategy asks to keep caches, in a pool that keeps no conversation",
		workers: []string{"w1", "w2"},
		conf: `[strategies.keeping]
path = "DIR/wishes.wasm"
[[pools]]
name = "main"
models = ["sim"]
strategy = "keeping"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(6, request{words: 300})()
			s.wait(3)
			return nil
		}, says: `
status  (?m)^ready
status  keeping on routed history, 2 of 2 up
why     cache +the strategy asked: keep for 20s: not done, the router does not keep this request \(hand_over_bytes\)
metrics warmpath_cache_wishes_total\{pool="main",result="refused"\} 6
client! none|50\d|4\d\d
status! WARNING
log!    level=ERROR
`},
	{name: "group-in-queue", what: "24 samples of one prompt for two workers that take two each",
		workers: []string{"w1", "w2"},
		conf: teams + onePool + `max_in_flight = 2
[pools.queue]
wait = "3s"
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(24, request{key: keyB, words: 3000, tokens: 200, group: true, header: "X-Warmpath-Group: g1"})
			s.wait(2)
			s.about = "r20"
			s.wait(2)
			return nil
		}, says: `
status  WARNING pool main refuses requests: \d+ so far, as its workers had max_in_flight
status  pool main .* 2 of 2 up.*would need \d+ workers to refuse nothing
status! ejected|NOT READY
why     waited +3(\.\d+)?s in the router's queue, for a worker with room, behind some \d+ others
why     decision +none: refused with queue_wait
log     the pool refuses requests, as its workers are full
metrics warmpath_queue_dropped_total\{.*reason="wait"\} [1-9]
client  429 .*queue_wait.*retry-after=
client! 50\d|none
alert?  WarmpathShedding
alert?  WarmpathQueueFilling
`},
	{name: "drain-while-redis-hangs", what: "an operator drains a worker while the Redis of two routers does not answer",
		workers: []string{"w1", "w2"},
		conf: `[history]
redis = "redis://@redis/0"
name = "ra"
` + onePool + `hand_over_bytes = 67108864
WORKERS w1 w2
`,
		play: func(s *scene) error {
			if err := s.another("\"ra\"", "\"rb\""); err != nil {
				return err
			}
			s.ask(6, request{words: 300})()
			s.stopRedis()
			s.wait(2)
			s.does("drain", "w1", "--hand-over", "--within", "5s")
			s.ask(4, request{})()
			s.wait(6)
			return nil
		}, says: `
status  WARNING Redis of \[history\] lost: the routers hear nothing of one another
status  (?m)^w1 +draining .*asked to drain
why     decision +w2
log     history: Redis is lost
log     conversations have moved.*worker=w1 moved=[1-9]\d* .*failed=0
client  3 conversations and 0 requests move to other workers
client  warning: Redis of \[history\] is lost: the other routers hear of this when it is back
client! none|50\d
status! NOT READY
alert   WarmpathStoreDown
`},
	{name: "reload-leaves-out", what: "a reload leaves out a worker that has streams and conversations",
		workers: []string{"w1", "w2"},
		conf: onePool + `continue = 1
hand_over_bytes = 67108864
WORKERS w1 w2
`,
		play: func(s *scene) error {
			s.ask(8, request{words: 300})()
			done := s.ask(6, request{tokens: 500, patience: 40 * time.Second})
			s.wait(1)
			if err := s.reload("WORKERS w1 w2", "WORKERS w2"); err != nil {
				return err
			}
			done()
			s.wait(3)
			s.about = "r9"
			return nil
		}, says: `
status  last change taken \d+s ago: pools.main.workers.w1 \(gone\)
status  1 of 1 up
status! WARNING|(?m)^w1 +
why     answer +200 after
log     worker draining.*worker=w1 why="no longer configured" in_flight=3
log     conversations have moved.*worker=w1 moved=[1-9]\d* .*failed=0
log     worker removed.*worker=w1
client! none|broken|50\d
`},
	{name: "alias-to-paused", what: "an alias leads to a pool whose only worker is paused, and has a fallback",
		workers: []string{"a1 --dev", "b1 --model small"},
		conf: `[[models]]
name = "chat"
to = [{ model = "sim" }]
fallback = "small"
[[pools]]
name = "a"
models = ["sim"]
pause_max = "10s"
WORKERS a1
[[pools]]
name = "b"
models = ["small"]
WORKERS b1
`,
		play: func(s *scene) error {
			s.ask(2, request{model: "chat"})()
			if err := s.order("a1", "/pause?mode=keep"); err != nil {
				return err
			}
			s.wait(4)
			s.ask(3, request{model: "chat", patience: 40 * time.Second})
			s.wait(14)
			return nil
		}, says: `
status  (?m)^ready
status  aliases: chat leads to sim
status  PAUSED: no worker is up, and requests wait for one, 10m0s at most
status  WARNING paused for 1\ds: a1: .*their requests wait: POST /resume to each
status! cannot serve|POOL DOWN|paused for 0s
why     model +sim, asked for as chat, pool a
why     answer +under way for
log     worker is still paused.*worker=a1 for=10s run="curl -X POST http
log!    get 503
metrics! warmpath_model_fallbacks_total\{.*\} [1-9]
client! 50\d|none|broken
alert   WarmpathPoolEmpty
alert?  WarmpathWorkerDown
alert?  WarmpathSlowFirstToken
`},
}
