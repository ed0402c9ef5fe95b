# What a developer calls. `make` alone lists it.

# The rows of the table in plugins.go: {"name", package.New},
STRATEGIES := $(shell sed -n 's/^[[:space:]]*{"\([a-z0-9]*\)", [a-z0-9]*\.New},.*/\1/p' plugins/plugins.go)
MODULES    = $(STRATEGIES:%=plugins/builtin/%.wasm.zst)
GUEST      = $(shell find sdk plugins -name '*.go' ! -name '*_test.go') go.mod

# OTLP's protocol imports gRPC, which nothing calls. With this tag it leaves x/net/trace and its templates out: with a template
# in the binary the linker keeps every exported method of every type: 43 MB in place of 31.
TAGS      = grpcnotrace

# Each target compiles as build does, without cgo and without paths, or every package would be compiled three times: for the
# tests, for the binary and for vet. The race detector alone needs cgo.
export CGO_ENABLED ?= 0
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null))

# The release that the first section of docs/CHANGELOG.md describes. A commit that has no tag behind it is on the way to it.
NEXT      = v0.1.0
VERSION  ?= $(shell git describe --tags --dirty 2>/dev/null || git describe --always --dirty 2>/dev/null | sed 's/^/$(NEXT)-dev-/' | grep . || echo $(NEXT)-dev)
LDFLAGS   = -s -w -X github.com/warmpath/warmpath/daemon.Version=$(VERSION)
PREFIX   ?= /usr/local
UNITDIR  ?= $(PREFIX)/lib/systemd/system
BIN      ?= bin/warmpath
FUZZTIME ?= 10s
PACKAGES ?= ./daemon ./...
TOOLS    ?= ./...
SOAK     ?= 3m
STEPS    ?= $(shell awk '!/^\#/ { print $$1 }' .ci/night.txt)
TORTURE  ?= 10m
BENCHCOUNT ?= 3

# What a release is for; the image has those of Linux.
RELEASES ?= linux-amd64 linux-arm64 darwin-arm64
IMAGES    = $(filter linux-%,$(RELEASES))
RELEASE   = bin/release/warmpath_$(VERSION)
CA       ?=

# Not in go.mod: a tool's dependencies are no concern of those who import the SDK.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
KUBESCORE   = github.com/zegl/kube-score/cmd/kube-score@v1.20.0

.DEFAULT_GOAL = help
.PHONY: image chart release noted $(RELEASES:%=release-%)
.PHONY: help build modules strategies run test race hammers night chartcheck sbomcheck imagecheck mutants fuzz bench faults attacks incidents signs pairs rolling soak policies torture labcells labcheck clients aliases check install uninstall
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: modules ## bin/warmpath, one static binary with the built-in strategies in it
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags='$(LDFLAGS)' -o bin/warmpath ./daemon/warmpath

modules: $(MODULES) ## the built-in strategies as wasm, if their sources changed

plugins/builtin/%.wasm.zst: $(GUEST) testdata/release/pack/main.go
	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o plugins/builtin/$*.wasm ./plugins/$*/module
	testdata/run release/pack plugins/builtin/$*.wasm

run: build ## the daemon on 127.0.0.1:8080 with four simulated workers, and a short chat through it
	bin/warmpath demo

strategies: # the names of the built-in strategies
	@echo $(STRATEGIES)

# make check vets. Many tests wait for clocks and not for processors, so four of a package run at once. With eight, or with more
# packages than processors, those that hold a router to a time fail now and then. ./daemon takes longest, and begins first.
test: modules ## all tests, of the product and then of the module in testdata; SKIP=REGEXP leaves some of the product's out
	go test -tags $(TAGS) -vet=off -timeout 30m -parallel 4 $(if $(SKIP),-skip '$(SKIP)') $(PACKAGES)
	go test -C testdata -tags $(TAGS) -vet=off -timeout 30m -parallel 4 $(TOOLS)

race: modules ## all tests with the race detector
	env -u CGO_ENABLED go test -race -timeout 40m -parallel 4 $(PACKAGES)

# A test that hammers a lock has one of these words in its name.
HAMMERS = Hammer|Race|UnderLoad|Torture|Beside|AtOnce|Together|Storm|Swap|OneVersion
HAMMERED = $(filter-out daemon/cli,$(shell grep -rlE --include="*_test.go" "^func Test[A-Za-z]*($(HAMMERS))" cache conf daemon host | xargs -n 1 dirname | sort -u))

hammers: modules ## the tests that hammer a lock, with the race detector
	env -u CGO_ENABLED go test -race -vet=off -timeout 20m -parallel 4 -run '$(HAMMERS)' $(HAMMERED:%=./%)

mutants: modules ## leave each rule of the judge of workers, of accounts, limits and the queue out in turn: a check must find it; half an hour. MUTANTS=REGEXP for some of the judge
	go test -timeout 1h -run 'TestTenants$$|TestMutants$$' -v ./daemon/request/account -tenants 10000 -mutants '$(or $(MUTANTS),.)'
	go test -timeout 3h -run 'TestMutants$$' -v ./daemon/request/exchange -mutants '$(or $(MUTANTS),.)'

fuzz: modules ## each fuzz target for FUZZTIME (10s)
	@mkdir -p .cache; go test -list '^Fuzz' $(PACKAGES) >.cache/fuzz.txt || { cat .cache/fuzz.txt; exit 1; }
	@awk '/^Fuzz/ { names[n++] = $$1 } \
	  /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' .cache/fuzz.txt | \
	while read -r package name; do \
	  echo "$$package $$name"; \
	  go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
	done

# The benchmarks behind the figures of testdata/bench/json/targets.go, and no others. The pick is timed beside the tool, as
# it spans host and plugins. A failing pick needs a new instance each time, untimed: its runs are counted, or it lasts hours.
# BENCH='-run growth' and more has the figures of bench/data alone, and is passed to it.
ifneq ($(BENCH),)
bench: build
	@testdata/run bench/data -bin bin/warmpath $(BENCH)
else
bench: build ## one JSON line a figure, with its target; the data plane beside nginx and haproxy, the KV cache beside redis-server
	@mkdir -p .cache; run() { go test -run '^$$' -benchmem -count $(BENCHCOUNT) "$$@"; }; { \
	  (cd testdata && run -bench '^Benchmark(Pick|PickTail|FromText|KV)$$' ./bench/json) && \
	  run -bench '^Benchmark(PickGo|PickParallel|Notices)$$' ./host && \
	  run -bench '^BenchmarkShadow$$' ./daemon && \
	  run -bench '^BenchmarkPickAllocating$$' -benchtime 10000000x -count 1 ./host && \
	  run -bench '^Benchmark(ColdStart|WarmStart)$$' -benchtime 3x ./host && \
	  run -bench '^BenchmarkTrapToFallback$$' -benchtime 100x ./host && \
	  run -bench '^BenchmarkRunaway$$/^(loop|recursion|flood)$$' -benchtime 100x ./host && \
	  run -bench '^BenchmarkFault$$' -benchtime 60x ./host && \
	  run -bench '^Benchmark(Lookup|Lookup256Workers|Insert|InsertCold|BytesPerPair|LookupBesideInserts)$$' ./cache/prefix && \
	  run -bench '^BenchmarkDecode$$' ./cache/kvevents && \
	  run -bench '^BenchmarkPubToIndex$$' -benchtime 300000x ./daemon/fleet/feed && \
	  run -bench '^Benchmark(Events|Hash|Lookup|Lookup256Workers|LookupBesideEvents|LookupBesideFleet|BytesPerPair)$$' ./cache/holdings && \
	  run -bench '^Benchmark(Put|Page)$$' ./cache/kvstore/catalog && \
	  run -bench '^BenchmarkPut$$' ./cache/kvstore/chunks && \
	  run -bench '^Benchmark(Scan256KB|ScanHash256KB)$$' ./daemon/request/prompt && \
	  run -bench '^BenchmarkHit$$' ./daemon/request/tokens && \
	  run -bench '^Benchmark(Tell|Hear)$$' ./daemon/peers; \
	} >.cache/bench.txt || { cat .cache/bench.txt; exit 1; }
	@testdata/run bench/json <.cache/bench.txt
	@testdata/run bench/data -bin bin/warmpath
	@testdata/run bench/kv -bin bin/warmpath
	@testdata/run bench/kv -l2 -bin bin/warmpath
endif

faults: build ## break what stands around a running daemon, one JSON line a check; FAULTS=-quick for the short form
	@testdata/run trials/faults -bin bin/warmpath $(FAULTS)

attacks: build ## every known way to break a running daemon from outside, a line a way; ATTACKS='-run REGEXP' for some
	@testdata/run trials/attacks -bin bin/warmpath $(ATTACKS)

incidents: build ## what an operator reads while something is wrong, a JSON line an incident; INCIDENTS='-run REGEXP' for some
	@testdata/run trials/incidents -bin bin/warmpath $(INCIDENTS)

signs: build ## the judge at 10,000 random fleets; what may speak against a worker, played at one of 8, a JSON line a sign and load; SIGNS='-seconds 15 -run REGEXP' for less
	go test -tags $(TAGS) -timeout 1h -run 'TestJudge$$' ./daemon/request/exchange -fleets 10000
	@testdata/run trials/signs -bin bin/warmpath $(SIGNS)

pairs: build ## each event at each moment of a pair's life; 10,000 random requests to prefillers and decoders of each engine and connector, with failures: a line each; PAIRS='-connector REGEXP' for some
	go test -tags $(TAGS) -vet=off -timeout 30m -run 'TestLifeOfAPair$$' ./daemon -lives
	@testdata/run trials/pairs -bin bin/warmpath $(PAIRS)

rolling: build ## eight workers replaced one by one under agents' load, with and without a hand-over: a JSON line each; ROLLING='-seed 2'
	@testdata/run trials/rolling -bin bin/warmpath $(ROLLING)

night: ## what is too long for each change: the steps of .ci/night.txt, or STEPS of them; some 70 minutes
	$(MAKE) -k SIGNS='-seconds 15 -run "^(done|abort|503|429|401|404|page|reset|health-503-once)"' $(STEPS)

# kube-score wants what is left out here: a limit of CPU, which would make each stream wait; a pull of each start, although an image's
# tag is a release; and ids of the pod, which OpenShift gives.
chartcheck: ## the Helm chart: the objects of the kustomization; twelve fleets, and what kube-score says of them; values that are refused
	@rm -rf .cache/chart && mkdir -p .cache/chart
	cd testdata/release/chart && go vet . && RENDERED=$(CURDIR)/.cache/chart go test -count=1 .
	GOBIN=$(CURDIR)/.cache/bin go install $(KUBESCORE)
	cd .cache/chart && for f in *.yaml; do ids=; [ $$f != openshift.yaml ] || ids="--ignore-test container-security-context-user-group-id"; \
	  ../bin/kube-score score --ignore-container-cpu-limit --ignore-test container-image-pull-policy $$ids -o ci $$f >$$f.out || \
	  { echo "kube-score on $$f:"; grep CRITICAL $$f.out; exit 1; }; done

sbomcheck: build ## the binary is small; its bill of materials is valid
	cd testdata/release/sbomcheck && go vet . && BIN=$(CURDIR)/bin/warmpath go test -count=1 .

imagecheck: build ## the image, unpacked as an engine does, answers a request
	cd testdata/release/image && go vet . && BIN=$(CURDIR)/bin/warmpath go test -count=1 .

soak: build ## SOAK (3m) of load with random faults: memory flat, nothing left over
	@testdata/run trials/faults -bin bin/warmpath -soak $(SOAK)

policies: ## the hit rates of the KV cache's eviction policies over a trace of block ids, as a table: TRACE=FILE.jsonl
	@test -n "$(TRACE)" || { echo "name a trace: make policies TRACE=FILE.jsonl; testdata/traces/README.md has the format" >&2; exit 2; }
	@cd testdata/bench/policies && go run . $(abspath $(TRACE))

torture: build ## TORTURE (10m) of the KV cache: random puts, gets and leases, killed clients and daemons, a full disk
	@testdata/run bench/torture -bin bin/warmpath -for $(TORTURE)

labcells: ## the columns by which strategies are judged, beside tuned rules of others; LABCELLS='-trace FILE -n 2' and more
	@testdata/run lab/cells $(LABCELLS)

labcheck: modules ## the lab's model held to the daemon over HTTP, in real time; some minutes of an idle machine
	@testdata/run lab/check

# The Go SDK of OpenAI is one package of some hundred thousand lines: unoptimised it compiles in a third of the time.
clients: build ## the SDKs of OpenAI, Anthropic and AWS and four coding agents, against simulated workers; CLIENTS='-only agents -turns 20' and more
	@cd testdata/clients && go run -gcflags='github.com/openai/openai-go/v3/...=-N -l' -gcflags='github.com/aws/...=-N -l' . $(CLIENTS)

aliases: ## the same clients, whose models' names are aliases: no other name may be in a byte of an answer
	@$(MAKE) --no-print-directory clients CLIENTS=-alias

# The guests' own files are seen only by wasip1; sdktest is not for it, hence no
# tests there; and what is only exported to the host counts as unused (U1000).
check: modules ## fmt, vet, staticcheck, the rules of house, tidy; leaves git as it was
	@before=$$(git status --porcelain 2>/dev/null || true); \
	unformatted=$$(gofmt -l $$(find . -name '*.go' -not -path './.cache/*')); \
	if [ -n "$$unformatted" ]; then echo "check: run gofmt -w on:"; echo "$$unformatted"; exit 1; fi; \
	set -ex; \
	go vet -tags $(TAGS) ./...; \
	GOBIN=$(CURDIR)/.cache/bin go install $(STATICCHECK); \
	.cache/bin/staticcheck -tags $(TAGS) ./...; \
	(cd testdata && ../.cache/bin/staticcheck -tags $(TAGS) ./...); \
	GOOS=wasip1 GOARCH=wasm .cache/bin/staticcheck -tests=false -checks inherit,-U1000 ./sdk $(STRATEGIES:%=./plugins/%/...); \
	go test -count=1 ./house; \
	go mod tidy -diff; \
	go -C testdata mod tidy -diff; \
	set +x; \
	after=$$(git status --porcelain 2>/dev/null || true); \
	if [ "$$before" != "$$after" ]; then echo "check: git status changed:"; echo "$$after"; exit 1; fi; \
	echo "check: ok"

# Each file of an installation but the manual pages, which are named by the commands.
SHARE     = $(PREFIX)/share
INSTALLED = $(PREFIX)/bin/warmpath $(UNITDIR)/warmpath.service $(UNITDIR)/warmpath.socket $(SHARE)/doc/warmpath/warmpath.toml \
  $(SHARE)/doc/warmpath/all-keys.toml $(SHARE)/bash-completion/completions/warmpath $(SHARE)/zsh/site-functions/_warmpath \
  $(SHARE)/fish/vendor_completions.d/warmpath.fish

install: build ## binary, systemd units, manual pages, completions and an example below PREFIX (/usr/local), all below DESTDIR
	install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))) $(SHARE)/man/man1)
	install -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/warmpath
	sed 's#/usr/local/bin/#$(PREFIX)/bin/#' deploy/systemd/warmpath.service >$(DESTDIR)$(UNITDIR)/warmpath.service
	install -m 644 deploy/systemd/warmpath.socket $(DESTDIR)$(UNITDIR)
	install -m 644 deploy/systemd/warmpath.toml $(DESTDIR)$(SHARE)/doc/warmpath
	install -m 644 conf/warmpath.toml $(DESTDIR)$(SHARE)/doc/warmpath/all-keys.toml
	$(BIN) man $(DESTDIR)$(SHARE)/man/man1
	$(BIN) completion bash >$(DESTDIR)$(SHARE)/bash-completion/completions/warmpath
	$(BIN) completion zsh >$(DESTDIR)$(SHARE)/zsh/site-functions/_warmpath
	$(BIN) completion fish >$(DESTDIR)$(SHARE)/fish/vendor_completions.d/warmpath.fish

uninstall: ## delete what make install wrote, with the same PREFIX and DESTDIR; the configuration and what the router wrote stay
	rm -f $(addprefix $(DESTDIR),$(INSTALLED)) $(DESTDIR)$(SHARE)/man/man1/warmpath.1 $(DESTDIR)$(SHARE)/man/man1/warmpath-*.1
	rmdir $(DESTDIR)$(SHARE)/doc/warmpath

# The same sources and Go give the same bytes, wherever they lie.
$(RELEASES:%=release-%): release-%: modules
	CGO_ENABLED=0 GOOS=$(firstword $(subst -, ,$*)) GOARCH=$(lastword $(subst -, ,$*)) go build -trimpath -buildvcs=false -tags $(TAGS) -ldflags='$(LDFLAGS) -buildid=' \
	  -o $(RELEASE)_$(subst -,_,$*) ./daemon/warmpath

image: $(IMAGES:%=release-%) ## an OCI image of the Linux binaries as one tar file, bin/release; CA=FILE puts a bundle of authorities in
	cd testdata/release/image && go run . -o $(CURDIR)/$(RELEASE)_image.tar -version $(VERSION) $(if $(CA),-ca $(abspath $(CA))) \
	  $(foreach p,$(IMAGES),$(subst -,/,$(p))=$(CURDIR)/$(RELEASE)_$(subst -,_,$(p)))

chart: ## the Helm chart of VERSION as a .tgz in bin/release, for helm push; its images have the same version as their tag
	@mkdir -p bin/release
	@testdata/run release/chartpack -version $(VERSION) -o $(RELEASE)_chart.tgz deploy/helm/warmpath

noted: # refuses to release what the changelog does not describe
	@grep -qx '## $(VERSION:v%=%)' docs/CHANGELOG.md || { echo "docs/CHANGELOG.md has no section \"## $(VERSION:v%=%)\": a release is a tag that it describes" >&2; exit 1; }

release: noted $(RELEASES:%=release-%) image chart ## binaries, image, chart, bills of materials and checksums of VERSION in bin/release
	cd bin/release && go version -m $(foreach p,$(RELEASES),warmpath_$(VERSION)_$(subst -,_,$(p))) >warmpath_$(VERSION)_modules.txt
	for p in $(subst -,_,$(RELEASES)); do \
	  testdata/run release/sbom -version $(VERSION) -o $(RELEASE)_$$p.cdx.json $(RELEASE)_$$p || exit 1; done
	cd bin/release && sha256sum warmpath_$(VERSION)_* >SHA256SUMS
