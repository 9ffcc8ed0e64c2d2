# Barnabas: bare `make` prints this help.
GO      ?= go
BIN     := bin/barnabas
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 20s
CHECKS  ?= 1000
# Of a package's tests: what hangs fails, a busy machine doesn't.
TIMEOUT ?= 20m
STATICCHECK_VERSION := v0.7.0
# Built once for each Go: `go run` with a version asks the proxy every time, for what it says of that version.
STATICCHECK := bin/staticcheck-$(STATICCHECK_VERSION)-$(shell $(GO) env GOVERSION)
# The packages with seeded model tests.
SIM := ./cluster/controller ./cluster/metadata ./cluster/replica ./coordinator/group ./coordinator/runtime ./coordinator/txn \
	./protocol/batch ./server/api ./storage ./storage/producer
# The packages with goroutines of their own: the race detector runs on these.
RACE := ./internal/... ./storage/... ./cluster/... ./coordinator/... ./server/...

.DEFAULT_GOAL := help
.PHONY: help build download run test race lint tidy cross fuzz crash crash-sample transactions transactions-sample compat differential dumplog importcheck bench budget docs cover clean compat-sample sim compaction cleaner-memory

help: ## this help
	@awk 'BEGIN {FS = ":.*## "; print "Barnabas: Kafka in one small Go binary\n"} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: bin/build.mod ## build bin/barnabas
	CGO_ENABLED=0 $(GO) build -modfile bin/build.mod -trimpath -tags urfave_cli_no_docs -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/barnabas

# The CLI library's default help printer uses text/template, which makes the linker keep every method of every type.
# cmd/barnabas prints help itself, so the build takes the library without that default: docs/decisions/0004-binary-size.md.
bin/build.mod: go.mod go.sum Makefile
	@rm -rf bin/cli bin/build.mod && mkdir -p bin/cli
	@$(GO) mod download github.com/urfave/cli/v2
	@dir="$$($(GO) list -m -f '{{.Dir}}' github.com/urfave/cli/v2)" && \
	  for f in "$$dir"/go.mod "$$dir"/*.go; do case $$f in *_test.go) ;; *) cat "$$f" > "bin/cli/$${f##*/}";; esac; done
	@sed -i.orig 's/^var HelpPrinterCustom helpPrinterCustom = printHelpCustom$$/var HelpPrinterCustom helpPrinterCustom/' bin/cli/help.go
	@if cmp -s bin/cli/help.go bin/cli/help.go.orig; then echo "the CLI library has changed: see docs/decisions/0004-binary-size.md"; exit 1; fi
	@cp go.sum bin/build.sum && cp go.mod bin/build.mod.new
	@$(GO) mod edit -replace github.com/urfave/cli/v2=./bin/cli bin/build.mod.new && mv bin/build.mod.new bin/build.mod

run: build ## build, then start the broker on :9092 with data in ./barnabas-data
	./$(BIN) serve

test: ## every test that needs only Go
	$(GO) test -timeout $(TIMEOUT) ./...

race: ## the race detector on the packages with concurrency (needs gcc)
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $(RACE)

lint: $(STATICCHECK) ## gofmt, go vet and staticcheck (fetched from the Go proxy)
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt wants:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(MAKE) -C compat-tests vet

$(STATICCHECK):
	GOBIN=$(CURDIR)/bin $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	@mv bin/staticcheck $@

download: $(STATICCHECK) ## what the targets below fetch: Go modules, staticcheck, Apache Kafka's jars
	$(GO) mod download
	$(MAKE) -C compat-tests download

tidy: ## house style: import order, package purpose, injected time, disk and network
	$(GO) test -count=1 ./internal/tidy/

cross: ## build and vet for the other systems
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/barnabas
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/barnabas
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/barnabas

fuzz: ## each fuzz target for FUZZTIME (20s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target $(FUZZTIME)"; \
	    out=$$($(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg 2>&1) && echo "$$out" | tail -n 1 && continue; \
	    echo "$$out"; \
	    if echo "$$out" | grep -q 'Failing input'; then exit 1; fi; \
	    echo "$$out" | grep -q 'context deadline exceeded' || exit 1; \
	    echo "(Go's own fault: the time was over while an input ran; nothing failed)"; \
	  done; \
	done

compat: build ## every client row against the binary; writes docs/compat.md
	$(MAKE) -C compat-tests compat

compat-sample: build ## the kcat, franz-go and kgo rows only
	$(MAKE) -C compat-tests compat-sample

differential: build ## the same requests to this broker and to Apache Kafka 4.4 and 3.9, in every version
	$(MAKE) -C compat-tests differential

crash: build ## kill -9 under load, 100 times, with 2 GiB in unrolled segments
	$(MAKE) -C compat-tests crash

crash-sample: build ## ten kills
	$(MAKE) -C compat-tests crash-sample

transactions: build ## Kafka's system test of transactions: copiers, aborts and kills for two minutes
	$(MAKE) -C compat-tests transactions

transactions-sample: build ## the same for twenty seconds
	$(MAKE) -C compat-tests transactions-sample

importcheck: build ## barnabas import over folders that Apache Kafka wrote, compared record by record
	$(MAKE) -C compat-tests importcheck

dumplog: build ## Apache Kafka's DumpLogSegments over what the broker wrote
	$(MAKE) -C compat-tests dumplog

bench: build ## side by side with Apache Kafka; writes docs/performance.md
	$(MAKE) -C compat-tests bench

budget: build ## start-up, idle and size against their limits
	$(MAKE) -C compat-tests budget

sim: ## seeded model tests, CHECKS (1000) schedules each; SEED=n repeats one
	$(GO) test -count=1 -timeout 60m $(SIM) -rapid.checks=$(CHECKS) $(if $(SEED),-rapid.seed=$(SEED))

docs: ## regenerate the generated pages of docs/
	$(GO) test -count=1 -run 'Docs' ./server/config ./server/api -args -update

compaction: build ## random keys, deletes and transactions, cleaned and compared, with kills
	$(MAKE) -C compat-tests compaction

cleaner-memory: ## ten million keys compacted in 32 MiB; prints the figures (minutes, 1 GiB of disk)
	$(GO) test -count=1 -v -timeout 60m -run TestCleanerMemory ./storage -clean-keys=10000000

cover: ## test coverage by package
	$(GO) test -cover ./...

clean: ## remove what was built
	rm -rf bin dist
