# Names for the scripts; `make` alone lists them. Nothing needs make: every target is one script.
.DEFAULT_GOAL := help
.PHONY: help quickstart build test test-faults test-hostile simulate chaos load test-thread test-address fuzz soak check-api check-machine check-compose check-docs check-page check-observability check-upgrade check benchmark benchmark-peers kill-peers format lint up package release down

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 17

quickstart: ## build, and run an example without a broker
	@scripts/quickstart

build: ## build the programs
	@scripts/install-dependencies
	@swift build

test: ## the tests, with a private RabbitMQ
	@scripts/test

test-faults: ## only the tests of faults: killed, frozen, cut, slow and silent
	@scripts/test-faults

test-hostile: ## a hostile operation, worker and client beside honest work: make test-hostile SECONDS=600
	@scripts/test-hostile $(SECONDS)

fuzz: ## libFuzzer on all that reads bytes from others: make fuzz TARGET=http SECONDS=600
	@scripts/fuzz $(TARGET) $(if $(SECONDS),--seconds $(SECONDS))

test-thread: ## unit and conformance tests under ThreadSanitizer
	@scripts/test-sanitized thread

test-address: ## unit and conformance tests under AddressSanitizer
	@scripts/test-sanitized address

simulate: ## clusters with faults, each from a seed: make simulate SEEDS=100000
	@scripts/simulate --seeds $(or $(SEEDS),10000)

chaos: ## faults of all kinds beside real work: make chaos MINUTES=60 SEED=1
	@scripts/chaos $(or $(MINUTES),10) $(SEED)

load: ## more clients, workers, graphs and streams than usual: make load PHASE=soak MINUTES=600
	@scripts/load $(PHASE) $(MINUTES)

soak: ## a row of the conformance suite again and again: make soak ROW=F2 TIMES=50
	@scripts/soak $(ROW) $(TIMES)

check-api: ## the HTTP API, with good requests and bad ones
	@scripts/check-api

check-page: ## the page of the coordinator, in a browser
	@scripts/check-page

check-machine: ## the commands of docs/DEPLOY.md on a Debian machine in a container, as root
	@scripts/check-machine

check-compose: ## docker-compose.yml, with Docker's engine in namespaces of its own, as root
	@scripts/check-compose

check-observability: ## traces, with a collector, and alerts, with Prometheus
	@scripts/check-observability

check-upgrade: ## a cluster whose programs are replaced, one after the other, while it works
	@scripts/check-upgrade

check-docs: ## the documentation of the library, without a warning
	@scripts/check-docs

check: ## everything that continuous integration checks
	@scripts/check

benchmark: ## measure against the floors of docs/PERFORMANCE.md
	@scripts/benchmark

benchmark-peers: ## measure beside other systems, such as Celery and Ray
	@scripts/benchmark-peers

kill-peers: ## the same kills against Operon, Celery and HyperQueue
	@scripts/kill-peers

format: ## format the Swift files
	@scripts/format

lint: ## say what is not formatted
	@scripts/format --check

up: ## a cluster in containers, and a run of the example on it
	@deploy/passwords
	@docker compose up --build --detach
	@docker compose run --rm operon submit --wait /graphs/wordcount-data.yaml

release: ## the files of a release: package, archive, checksums, notices
	@scripts/release

package: ## a Debian package of both programs
	@scripts/package

down: ## take it away again
	@docker compose down --volumes
