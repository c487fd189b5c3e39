# carma: build, demo, tests. The first words on a fresh machine: make demo
#
# Targets that need a Docker engine install it (as root, on Debian) and start it where it
# is missing, and stop it when done if they started it; test/setup/engine.sh tells how.

GO         ?= go
TAGS       ?= docker,e2e
LINT_TAGS  ?= $(TAGS),containerd,gpu,probe,images,hardware,failpoints,load
TEST_FLAGS ?= -race -count=1 -timeout 20m
BENCH      ?= .
FUZZTIME   ?= 10s
# Packages that start no goroutine, as TestSequential checks: their tests run without the race
# detector, with which they take five to fifteen times as long.
SEQUENTIAL := ./cmd/carma/settings ./cmd/carma/suite/compose ./cmd/carma/taskfile ./configs/models ./configs/traces ./configs/traces/original \
	./configs/workloads ./containers ./containers/endtext ./estimator ./estimator/allocator ./estimator/arguments ./estimator/booking \
	./estimator/command ./estimator/correct ./estimator/evaluate ./estimator/methods ./estimator/networks ./estimator/networks/hf ./estimator/networks/named ./estimator/networks/timm \
	./estimator/networks/zoo ./estimator/rivals ./estimator/shell ./estimator/step ./mapper ./mapper/breaker ./mapper/energy ./mapper/fairshare ./mapper/interference ./mapper/ledger ./mapper/model ./mapper/predict ./mapper/queue ./mapper/reserve ./mapper/rules ./mapper/sim \
	./mapper/sim/pairs ./mapper/sim/study ./internal/units ./mapper/words ./runner/journal ./runner/progress
OTHERS      = $$($(GO) list -tags $(TAGS) ./... | grep -vxF $(SEQUENTIAL:./%=-e carma/%))

ifeq ($(shell command -v $(GO) 2>/dev/null),)
$(error no $(GO) in PATH: install Go 1.26 or newer)
endif

VERSION := $(shell cmd/version.sh)
ENGINE  := test/setup/engine.sh

# main.version says which commit this is; stamping by go itself fails in a tree that git
# will not read (a copy, somebody else's clone). Programs and tests are built with the same
# flags, so that each package is compiled once for both.
export GOFLAGS := $(strip $(filter-out -buildvcs=% -trimpath,$(shell $(GO) env GOFLAGS)) -buildvcs=false -trimpath)
# go-nvml leaves the driver's functions to be found when they are called: an executable
# that wants all of them at its start (some distributions' default) would not start.
# Its C headers warn of what it offers and nobody here uses.
export CGO_LDFLAGS ?= -O2 -g -Wl,-z,lazy
export CGO_CFLAGS  ?= -O2 -g -Wno-deprecated-declarations
# Property tests draw the same cases in every run, so that the same code gives the same
# result. make properties draws others.
export RAPID_SEED ?= 1
# For the end-to-end tests.
export TEST_CARMA   := $(CURDIR)/bin/carma
export TEST_SIMTASK := $(CURDIR)/bin/simtask
export TEST_IMAGE   := carma/simtask:latest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo build image images images-test test test-security engines probe probe-scripts unit lint bench fuzz engine engine-stop onnxruntime train-gpumemnet train-estimator estimator-report replay-check replay-tables hardware-dry-run clean bin/carma bin/carma-kubernetes bin/carma-agent bin/carma-init bin/simtask

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: build ## run carma with fake GPUs and real containers, from nothing, in under a minute
	@$(ENGINE) run sh -ec 'test/setup/image.sh; exec test/demo.sh'

build: bin/carma bin/carma-init bin/simtask bin/LICENSES.txt ## bin/carma with bin/carma-init and the licences of what is in them, and bin/simtask for the image

.PHONY: build-cluster
build-cluster: build bin/carma-kubernetes bin/carma-agent ## also what Kubernetes clusters need: bin/carma-kubernetes and bin/carma-agent

# Always asked: go build knows better than make what changed.
bin/carma:
	$(GO) build -ldflags "-X main.version=$(VERSION)" -o $@ ./cmd/carma

bin/LICENSES.txt: go.mod go.sum containers/kubernetes/go.sum cmd/licenses.sh $(wildcard runner/web/look/files/others/*) | bin/carma
	GO="$(GO)" cmd/licenses.sh $@ ./cmd/carma ./cmd/carma-init ./cmd/simtask

# carma becomes it for clusters. A module of its own, with Kubernetes' client.
bin/carma-kubernetes:
	$(GO) build -C containers/kubernetes -ldflags "-X main.version=$(VERSION)" -o $(CURDIR)/$@ ./cmd/carma-kubernetes

# carma agent becomes it. Without this tag gRPC brings pages of its own, and their
# templates keep the linker from leaving out what nobody calls: 6 MB of 22.
bin/carma-agent:
	$(GO) build -C containers/kubernetes -tags grpcnotrace -ldflags "-X main.version=$(VERSION)" -o $(CURDIR)/$@ ./cmd/carma-agent

.PHONY: kubernetes-module
kubernetes-module: ## go vet, staticcheck and tests of containers/kubernetes that need no cluster (TEST_FLAGS=...)
	$(GO) build -o .cache/staticcheck honnef.co/go/tools/cmd/staticcheck
	cd containers/kubernetes && $(GO) vet ./... && $(GO) vet -tags kubernetes ./... && ../../.cache/staticcheck -tags kubernetes ./...
	$(GO) test -C containers/kubernetes $(TEST_FLAGS) ./...

# Runs in any image, so it is static.
bin/carma-init:
	CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o $@ ./cmd/carma-init

bin/simtask:
	CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o $@ ./cmd/simtask

.PHONY: docs
docs: ## bin/site: the documentation as a site with a search, for reading without network (Sphinx, npm)
	GO="$(GO)" cmd/docs.sh bin/site "$(VERSION)"

# A module of its own: what measures carma, fits its models and draws its pictures.
.PHONY: bin/lab lab
bin/lab:
	$(GO) build -C test/lab -o $(CURDIR)/bin/lab/ ./...

lab: ## go vet, staticcheck and tests of the lab, test/lab: fits, tables, campaigns on GPUs (a minute)
	$(GO) build -o .cache/staticcheck honnef.co/go/tools/cmd/staticcheck
	cd test/lab && $(GO) vet ./... && $(GO) vet -tags hardware ./... && ../../.cache/staticcheck -tags hardware ./...
	$(GO) test -C test/lab -count=1 ./...

image: bin/simtask ## the image carma/simtask:latest
	@$(ENGINE) run test/setup/image.sh

# TestStartCutOff is left out: docs/containers.md, Engines, says what is known of it there.
.PHONY: newest-engines
newest-engines: build ## the drivers and all of ./test with Docker 29, containerd 2 and runc 1.5, built from their modules (root, some 25 minutes)
	@test/setup/newest-engines.sh sh -ec 'test/setup/image.sh; \
		$(GO) test $(TEST_FLAGS) -count=1 -tags docker,containerd -skip "^TestStartCutOff$$" ./containers/docker/... ./containers/containerd/...; \
		$(GO) test $(TEST_FLAGS) -count=1 -timeout 60m -tags docker,e2e ./test; \
		$(GO) test $(TEST_FLAGS) -count=1 -tags e2e,containerd,gpu -run "^TestGPUs" ./test'

test: build try-onnxruntime try-axe ## every test: unit, property, race, end-to-end on a real engine (TEST_FLAGS=...)
	$(GO) test $(filter-out -race,$(TEST_FLAGS)) $(SEQUENTIAL)
	@$(ENGINE) run sh -ec 'test/setup/image.sh; $(GO) test $(TEST_FLAGS) -tags $(TAGS) $(OTHERS)'
	$(GO) test -count=1 -timeout 10m -tags failpoints -run "$(HISTORIES)" ./runner -histories 40 -write 7

.PHONY: quick
quick: ## go vet, the vocabulary and the short tests of what differs from a commit, and of what imports it (BASE=HEAD~1)
	@test/quick.sh

# One seed a round; a failure prints the seed and writes the case to testdata/rapid.
ROUNDS ?= 10
.PHONY: properties
properties: ## the property tests of the mapper with random seeds (ROUNDS=10)
	@for i in $$(seq $(ROUNDS)); do \
		RAPID_SEED=0 $(GO) test -count=1 -timeout 20m -run '^(TestProperties|TestCoarseIsNeverLearned)$$' ./mapper || exit 1; done

engines: build ## the containerd driver, and the real NVIDIA Container Runtime with simulated devices (root)
	@$(ENGINE) run sh -ec 'test/setup/image.sh; \
		$(GO) test $(TEST_FLAGS) -tags containerd ./containers/containerd/...; \
		$(GO) test $(TEST_FLAGS) -tags e2e,containerd,gpu -run "^Test(Containerd|GPUs)" ./test'

# What needs virtual time and failpoints.
HISTORIES := ^Test(Histories|RemovalThatFails|EveryWrite|CrashKeeps.*)$$

# POINT= selects points by prefix, FAULT= faults by a part of the name, DRIVER=docker|containerd; the whole takes about an
# hour on two busy cores. What matters is shown; all is in .cache/faults.log.
.PHONY: test-faults test-load
test-faults: build ## kill the daemon at every failpoint on both drivers, and every fault; tables (root, POINT=, FAULT=)
	@mkdir -p .cache
	@$(ENGINE) run sh -ec 'test/setup/image.sh; code=0; \
		$(GO) test -count=1 -timeout 60m -tags failpoints -run "$(HISTORIES)" ./runner -histories 2000 || code=1; \
		LINES=3000000 $(GO) test -count=1 -timeout 30m -tags e2e,containerd -run "^Test(Containerd)?LogFlood$$" ./test || code=1; \
		$(GO) test -v -count=1 -timeout 3h -tags e2e,containerd,failpoints -run "^Test(Failpoints|Faults)$$" ./test > .cache/faults.log 2>&1 || code=1; \
		grep -v "^=== " .cache/faults.log; exit $$code'

test-load: build ## 200 clients for five minutes, and 100,000 finished tasks; prints figures (CLIENTS=, DURATION=, FINISHED=)
	$(GO) test -v -count=1 -timeout 1h -tags load -run "^Test(Load|ManyFinished)$$" ./test

.PHONY: test-upgrade
test-upgrade: build ## this carma and others take over each other's journals, with tasks in every state (root, UPGRADE_FROM=commits and tags)
	@builds=$$(test/upgrade/builds.sh $${UPGRADE_FROM:-c2fad6d 3f37614 bd63d78 $$(git tag --list 'v*' --sort=-v:refname | head -n 2)}) && \
	TEST_BUILDS=$$(echo $$builds) $(ENGINE) run sh -ec 'test/setup/image.sh; $(GO) test -v -count=1 -timeout 30m -tags $(TAGS) -run "^Test(Upgrade|Downgrade|LaterProgram)$$" ./test'

.PHONY: test-page
test-page: try-axe ## the page and the report of a replay in a browser, and what they cost; pictures into .cache/pictures (Chromium)
	@mkdir -p .cache/pictures
	CARMA_PICTURES=$(CURDIR)/.cache/pictures $(GO) test -v -count=1 -timeout 10m -run "^Test(Page|Size|Report)" ./runner ./runner/web ./cmd/carma/report

# The lines that matter are shown; all are in .cache/security.log.
test-security: build ## every wall with its attack, by two users; 1,000 launches per engine while their paths change (root, many minutes)
	@mkdir -p .cache
	@$(ENGINE) run sh -ec 'test/setup/image.sh; code=0; \
		$(GO) test -count=1 -timeout 60m -v ./runner/mounts -args -tries 100000 > .cache/security.log 2>&1 || code=1; \
		$(GO) test -count=1 -timeout 20m -v -tags docker -run "^Test(HostOOM|Pids)$$" ./containers/docker >> .cache/security.log 2>&1 || code=1; \
		$(GO) test -count=1 -timeout 20m -v -tags containerd -run "^Test(HostOOM|Pids)$$" ./containers/containerd >> .cache/security.log 2>&1 || code=1; \
		TEST_SECURITY=full TEST_SECURITY_RACES=1000 $(GO) test -count=1 -timeout 120m -v -tags e2e,containerd -run "^TestSecurity" ./test >> .cache/security.log 2>&1 || code=1; \
		grep -E "^ *(---|FAIL|ok|panic)|: wall |tries,|: mounts:" .cache/security.log; exit $$code'

# The build is kept, and takes about 11 CPU minutes the first time.
.PHONY: kubernetes kubernetes-demo kubernetes-short
kubernetes: kubernetes-demo ## a real Kubernetes on this machine, built from Go modules: a demo, then tests of driver, installation and deaths on it (root, runc)
	$(GO) test -C containers/kubernetes -count=1 -timeout 20m -tags kubernetes -run "^TestReal" .
	$(GO) test -C containers/kubernetes -count=1 -timeout 60m -tags kubernetes ./test

kubernetes-short: build-cluster ## a part of it: installed, upgraded and uninstalled; apiserver, kubelet and daemon killed (three minutes once it is built)
	$(GO) test -C containers/kubernetes -count=1 -timeout 15m -short -tags kubernetes -run "^Test(Install|Kills)$$" ./test

.PHONY: kubernetes-scale cluster-study
kubernetes-scale: build-cluster ## 1,250 fake nodes with 10,000 GPUs on a real control plane: pods a second by the driver alone and by the daemon, time to allocation (minutes)
	@GO="$(GO)" containers/kubernetes/test/build.sh >/dev/null
	$(GO) test -C containers/kubernetes -count=1 -timeout 30m -tags kubernetes -run "^TestScale$$" -v .
	$(GO) test -C containers/kubernetes -count=1 -timeout 30m -tags kubernetes -run "^TestBurst$$" -v ./test

# GPUs, MACHINES (of eight) and TASKS belong together: as many tasks for a GPU as there.
STUDY_MACHINES ?= 1250
STUDY_TASKS ?= 30000
cluster-study: bin/carma bin/lab ## policy carma against exclusive on a cluster, on jobs of Philly (PHILLY=the table of Sia's authors; many minutes)
	@test -n "$(PHILLY)" || { echo "make cluster-study PHILLY=philly.csv: name the job table, see test/lab/studies.md"; exit 2; }
	@mkdir -p .cache
	bin/carma trace sample "$(PHILLY)" --start 2017-10-03 --tasks $(STUDY_TASKS) --max-gpus 8 --out .cache/study-jobs.csv
	bin/carma trace map .cache/study-jobs.csv --match --load 1.1 --gpu-count $$(($(STUDY_MACHINES) * 8)) --out .cache/study.yaml
	bin/carma replay .cache/study.yaml --gpus sim:dgx-station-a100 --gpu-count 8 --machines $(STUDY_MACHINES) --policy Exclusive,carma --csv .cache/study-tasks.csv
	bin/lab/clusterstudy "$(STUDY_TASKS) jobs of Philly on $$(($(STUDY_MACHINES) * 8)) modelled A100, load 1.1" .cache/study-tasks.csv > test/lab/studies/cluster-study.svg

kubernetes-demo: build-cluster ## the demo alone: daemon, node and five tasks on that cluster, a minute and a half once it is built
	@command -v runc >/dev/null || apt-get install -qy --no-install-recommends runc
	@GO="$(GO)" containers/kubernetes/test/build.sh >/dev/null
	@GO="$(GO)" containers/kubernetes/test/demo.sh

probe: ## the probe in an image with PyTorch: builds it (2 GB, some minutes; root, debootstrap)
	@$(ENGINE) run sh -ec 'docker image inspect carma/pytorch-debian:latest >/dev/null 2>&1 || images/pytorch-debian/build.sh; \
		$(GO) test $(TEST_FLAGS) -tags probe ./estimator/probe'

probe-scripts: ## the probe on training programs as people write them (PYTHON=one with PyTorch and libraries)
	TEST_PYTHON="$(PYTHON)" CARMA_NEED_TORCH=1 CARMA_PROBE_LIVE=1 $(GO) test -count=1 -timeout 60m -v -run TestScripts ./estimator/probe

images: ## the training images carma/torch and their tags (BASE=an image with PyTorch, WORKLOADS=tags; all if unset)
	@$(ENGINE) run images/torch/build.sh $(WORKLOADS)

images-test: ## the training images on the CPU, on the image of make probe (some minutes)
	@$(ENGINE) run sh -ec 'docker image inspect carma/pytorch-debian:latest >/dev/null 2>&1 || images/pytorch-debian/build.sh; \
		$(GO) test $(TEST_FLAGS) -tags images -run TestImage ./test'

.PHONY: pictures picture-terminal picture-page picture-policies picture-report
pictures: picture-terminal picture-page picture-policies picture-report ## record the pictures of the documentation anew

# No engine is needed. A test compares them with what the program draws.
picture-policies: ## the pictures and tables of docs/results.md (seconds)
	UPDATE_PICTURES=1 $(GO) test -count=1 -run "^TestPolicyPictures$$" ./cmd/carma/replay

picture-report: bin/carma
	@command -v chromium >/dev/null || { echo "no Chromium: apt-get install chromium" >&2; exit 2; }
	@mkdir -p .cache
	bin/carma replay philly-t1-60 --policy exclusive,magm,carma --html .cache/report.html >/dev/null
	chromium --headless --no-sandbox --hide-scrollbars --force-device-scale-factor=1 --window-size=1080,1130 --virtual-time-budget=4000 \
		--screenshot=docs/report.png "file://$(CURDIR)/.cache/report.html" 2>/dev/null

picture-terminal: build bin/lab
	@$(ENGINE) run sh -ec 'test/setup/image.sh; test/lab/pictures/record.sh docs/top.svg'

picture-page: build bin/lab
	@$(ENGINE) run sh -ec 'test/setup/image.sh; test/lab/pictures/page.sh docs/page'

.PHONY: time-readme
time-readme: ## time the README's commands from a fresh clone (COLD=1: with an empty build cache)
	@$(ENGINE) run test/time-readme.sh

hardware-dry-run: ## the suite for machines with a GPU, on a simulated one (root, containerd)
	@command -v containerd >/dev/null && command -v runc >/dev/null || apt-get install -qy --no-install-recommends containerd runc
	$(GO) test -C test/lab $(TEST_FLAGS) -tags hardware ./hardware

unit: try-onnxruntime try-axe ## the tests that need no engine
	$(GO) test $(filter-out -race,$(TEST_FLAGS)) $(SEQUENTIAL)
	$(GO) test $(TEST_FLAGS) $(OTHERS)

onnxruntime: ## fetch ONNX Runtime's library, which the learned estimator needs
	@test/setup/onnxruntime.sh

# Without it the tests that need it are skipped; not in CI.
.PHONY: try-onnxruntime
try-onnxruntime:
	@test/setup/onnxruntime.sh || [ -z "$$CI" ]

# For the tests of the page in a browser.
.PHONY: try-axe
try-axe:
	@test/setup/axe.sh || [ -z "$$CI" ]

PYTHON ?= python3
DATA   ?= ../shared/data
train-gpumemnet: ## train estimator gpumemnet (DATA=folder, PYTHON=one with estimator/training/requirements.txt)
	OMP_NUM_THREADS=1 $(PYTHON) estimator/training/gpumemnet.py --data $(DATA)/gpumemnet --out estimator/rivals/gpumemnet

train-estimator: bin/lab ## learn the correction and the bounds of estimator carma (DATA=, PYTHON= as above)
	mkdir -p .cache
	bin/lab/features -data $(DATA) -out .cache/features.csv
	OMP_NUM_THREADS=1 $(PYTHON) estimator/training/residual.py .cache/features.csv .
	bin/lab/features -figures -data $(DATA) -out .cache/figures.csv
	OMP_NUM_THREADS=1 $(PYTHON) estimator/training/figures.py .cache/figures.csv estimator/figures

estimator-report: bin/lab try-onnxruntime ## score every estimator, into docs/estimators.md and test/lab/estimates.md (DATA=folder)
	bin/lab/report -data $(DATA)

replay-check: bin/carma ## replay the shipped traces; fails where a bound does not hold, prints the values that moved
	bin/carma replay --check test/replay-bounds.yaml

replay-tables: bin/carma bin/lab try-onnxruntime ## measure the tables of docs/results.md and test/lab/studies.md anew (some minutes; ONLY=names of tables)
	bin/lab/tables -carma bin/carma -only "$(ONLY)" docs/results.md test/lab/studies.md

.PHONY: release release-check test-package
release: ## .deb, .rpm, the daemon's image, what is linked in, checksums, into bin/release
	cmd/release.sh bin/release

release-check: ## the same, twice, in two folders: equal bytes (COLD=1: compiled anew for the second)
	test/release.sh bin/release

test-package: bin/simtask ## install, use, upgrade, remove the packages in a clean Debian 12 with systemd and Docker (root, minutes)
	test/package.sh

lint: ## gofmt, go vet, staticcheck
	@bad=$$(find . -name '*.go' -not -path './.*/*' -exec gofmt -l {} +) || exit 1; \
		[ -z "$$bad" ] || { echo "not gofmt-ed; run gofmt -w on:"; echo "$$bad"; exit 1; } >&2
	$(GO) vet ./...
	$(GO) vet -tags $(LINT_TAGS) ./...
	$(GO) tool staticcheck -tags $(LINT_TAGS) ./...

bench: ## benchmarks (BENCH=regexp)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

fuzz: ## every fuzz target for a short while (FUZZTIME=10s)
	@test/setup/fuzz.sh $(FUZZTIME)

engine: ## install and start a Docker engine where there is none, and leave it running
	@$(ENGINE) up

engine-stop: ## stop the engine if make started it
	@$(ENGINE) down

clean: engine-stop ## remove what was built, and stop an engine that make started
	rm -rf bin .cache .hardware test/out
