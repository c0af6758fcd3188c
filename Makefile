# kseg. `make` alone prints the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Packages whose code starts goroutines.
RACE_PKGS := ./broker ./cmd ./compare ./dump ./groups ./logdir ./ls ./rebuild ./retention ./salvage ./txn ./verify ./walk
# Not with the race detector: sweeps, in which the same goroutines do the same thing again.
RACE_SKIP := TestScripts|JSONFitsTheSchema|TestDumpOf|TestLinesFit|TestEvery(SwappedPair|FlippedBit|CutLog|Truncation)
FUZZTIME ?= 10s
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
ORACLE_LIB := $(or $(KSEG_ORACLE_LIB),$(HOME)/.cache/kseg-oracle/4.4.0)

PREFIX ?= /usr/local
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 freebsd/amd64 freebsd/arm64 windows/amd64
# Packages whose tests run on Windows.
WINDOWS_PKGS := ./format ./schema ./logdir ./render ./walk ./state
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1

.PHONY: help install release-check build test test-read exhaustive race lint fmt vet staticcheck tidy fuzz oracle bench microbench docs check-clean ci clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./kseg
	$(GO) build -trimpath -ldflags "-X kseg/cmd.version=$(VERSION)" -o kseg .

install: build ## install the binary, man pages and shell completions below PREFIX (/usr/local), or DESTDIR/PREFIX
	install -D -m 755 kseg "$(DESTDIR)$(PREFIX)/bin/kseg"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 644 docs/man/*.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" "$(DESTDIR)$(PREFIX)/share/zsh/site-functions" \
	  "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"
	./kseg completion bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kseg"
	./kseg completion zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kseg"
	./kseg completion fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kseg.fish"

# goreleaser wants to see where a release would go, which a clone from anywhere does not tell.
release-check: ## build every target of a release, and check .goreleaser.yaml
	@for target in $(TARGETS); do \
	  echo "build $$target"; CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} \
	    $(GO) build -trimpath -ldflags "-s -w" -o /dev/null .; done
	GOOS=windows $(GO) vet $(WINDOWS_PKGS)
	@if $(GO) run $(GORELEASER) --version >/dev/null 2>&1; then \
	  repo=$$(mktemp -d); trap 'rm -rf "$$repo"' EXIT; cp .goreleaser.yaml "$$repo"; cd "$$repo"; \
	  git init -q; git remote add origin https://github.com/kseg/kseg.git; $(GO) run $(GORELEASER) check; \
	else echo "goreleaser: skipped, $(GORELEASER) can't be fetched from here"; fi

test: ## run all tests
	$(GO) test ./...

test-read: ## run all tests with files read instead of mapped, as they are on Windows
	$(GO) test -short -tags nommap ./...

exhaustive: ## run all tests with every member of their sweeps: each flipped bit, each cut (minutes)
	KSEG_EXHAUSTIVE=1 $(GO) test -count=1 ./...

race: ## run the tests of the concurrent packages with the race detector (needs a C compiler)
	@if [ -z "$(strip $(RACE_PKGS))" ]; then echo "race: no packages"; \
	elif ! command -v "$$($(GO) env CC)" >/dev/null; then echo "race: skipped, the race detector needs a C compiler"; \
	else set -x; CGO_ENABLED=1 $(GO) test -race -vet=off -short -skip '$(RACE_SKIP)' $(RACE_PKGS); fi

lint: fmt vet staticcheck ## gofmt, go vet, staticcheck

fmt:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "gofmt wants to change:"; echo "$$bad"; exit 1; fi

# What has the tag stands beside everything else.
vet:
	$(GO) vet -tags oracle ./... ./testdata/make

# The version is pinned here and not in go.mod, so that a linter's dependencies never become ours.
staticcheck:
	@if $(GO) run $(STATICCHECK) -version >/dev/null 2>&1; then set -x; $(GO) run $(STATICCHECK) ./...; \
	else echo "staticcheck: skipped, $(STATICCHECK) can't be fetched from here"; fi

tidy: ## check that go.mod and go.sum are what the code needs
	$(GO) mod tidy -diff

fuzz: ## fuzz every decoder for FUZZTIME (10s) each
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

# KSEG_ORACLE_LIB names a folder with Kafka's jars; without it Maven brings them, once, to ~/.cache/kseg-oracle.
oracle: ## compare with the real tools, run again (needs Java 17, and Maven or KSEG_ORACLE_LIB)
	@if ! ls "$(ORACLE_LIB)"/kafka-tools-*.jar >/dev/null 2>&1; then \
	  mvn -q -B -f testdata/oracle/pom.xml dependency:copy-dependencies -DoutputDirectory="$(ORACLE_LIB)"; fi
	KSEG_ORACLE_LIB="$(ORACLE_LIB)" $(GO) test -tags oracle -count=1 -run Oracle ./...

bench: ## write docs/performance.md: kseg beside Kafka's own code (if KSEG_ORACLE_LIB is set), a bare loop, and how it grows (minutes, 9 GiB of disk)
	$(GO) run ./internal/bench -md docs/performance.md

microbench: ## run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

docs: ## rewrite what is generated: README's examples, man pages
	$(GO) generate ./...

check-clean: ## fail if the work tree has changes (after make docs: if something generated was stale)
	@if [ -n "$$(git status --porcelain)" ]; then git status --short; git --no-pager diff --stat; exit 1; fi

ci: lint tidy build test race ## what a change has to pass
	@echo ok

clean: ## remove what build made
	rm -f kseg
