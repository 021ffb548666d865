# Everything a person or the build server runs; `make` lists it. Needs bash, git, a JDK 25, Maven, cargo, cc, node and
# npm: `make bootstrap` says what is missing.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: help bootstrap build test test-java test-rust test-rest demo drill bench bench-circuits bench-fairness \
  bench-messaging bench-wbb lab load sim soak soak-status corpus fuzz images image-layers sign-images starts charts \
  cluster-images cluster-test cluster-chaos fmt clean

ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),help)),)
include build/env.mk
endif
export KEEP EDGE QUICK SEED JOBS SLOW_START_AFTER_IDLE SHAPES
# Maven refuses an artifact with another hash than the reviewed one. `make record-hashes` adds those of new ones.
HASHES = -Daether.artifactResolver.postProcessor.trustedChecksums=true \
  -Daether.artifactResolver.postProcessor.trustedChecksums.checksumAlgorithms=SHA-256 \
  -Daether.trustedChecksumsSource.summaryFile=true -Daether.trustedChecksumsSource.summaryFile.originAware=false \
  -Daether.trustedChecksumsSource.summaryFile.basedir=$(CURDIR)/.mvn/checksums
MAVEN = $(MVN) -B -ntp -Dstyle.color=never $(HASHES)
STEP = .ci/step
LAB_EXTENT = $(if $(QUICK),quick,$(if $(PAPER),paper,$(if $(CONTACTS),contacts,$(if $(LARGE),large,full))))
LAB_PARTIES = $(if $(QUICK)$(PAPER)$(CONTACTS),5,20)
# One heap for the whole platform in one JVM; the flags are those of the services.
JAVA = $(JAVA_HOME)/bin/java --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -XX:+UseSerialGC \
  -XX:TieredStopAtLevel=4 -Xmx1g -Djava.library.path=$(CURDIR)/build/native \
  -cp "$$(ls services/acceptance/target/acceptance-*.jar):$$(cat build/classpath)"
NOT_SOURCE := -name target -o -name node_modules
SOURCES := $(shell find pom.xml proto services \
  -type d \( $(NOT_SOURCE) -o -path '*/src/test' \) -prune -o -type f -print)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bootstrap: build/env.mk ## find or fetch the tools, say what is missing
	@echo "  everything needed is there"

build/env.mk: .ci/bootstrap
	@.ci/bootstrap

# Packages of npm that Java tests run.
NPM := build/verifier build/signal-client

build: build/classpath build/native/libsignal_jni.so $(NPM) bin/coterie bin/circuit ## compile everything

# The state of the sources, for the signature of images: a commit, and each file that differs from it.
build/classpath: $(SOURCES)
	@{ git rev-parse HEAD && git status --porcelain; } >build/source 2>/dev/null || echo unknown >build/source
	@$(STEP) build $(MAVEN) package -Dmaven.test.skip=true
	@touch $@

build/native/libsignal_jni.so: | build/classpath
	@$(STEP) native .ci/native

build/verifier: services/acceptance/verifier/package-lock.json
	@cd services/acceptance/verifier && \
	  ../../../$(STEP) verifier npm ci --prefix services/acceptance/verifier --no-audit --no-fund
	@touch $@

build/signal-client: services/messaging-compat/node/package-lock.json
	@cd services/messaging-compat/node && \
	  ../../../$(STEP) signal-client npm ci --prefix services/messaging-compat/node --no-audit --no-fund
	@touch $@

bin/coterie: build/classpath .ci/wrapper .ci/CacheableJars.java
	@.ci/wrapper

bin/circuit: $(shell find services/mpc-core/circuits -name target -prune -o -type f -print) services/mpc-core/Cargo.lock
	@$(STEP) circuit cargo build --release --locked --manifest-path services/mpc-core/Cargo.toml -p circuits
	@mkdir -p $(@D) && cp services/mpc-core/target/release/circuit $@

build/k6/packages: loadtest/k6/package-lock.json
	@$(STEP) k6-packages npm ci --prefix loadtest/k6 --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

build/k6/sign.js: build/k6/packages loadtest/k6/package.json $(wildcard loadtest/k6/*.js)
	@npm run --silent --prefix loadtest/k6 build

test: build build/k6/sign.js ## run the tests and linters of every language; CI=true fails on a test left out
	@touch build/.test-start
	@$(MAKE) --no-print-directory --keep-going -j2 test-java test-rust test-rest
	@.ci/skipped

# Two beside each other, of which Rust's computes most and gives way; the rest follows the one that ends first.
test-java:
	@STEP_SHOW='^\[(INFO|ERROR|WARNING)\] Tests run:.*[0-9]$$' $(STEP) java-tests $(MAVEN) -T 2 spotless:check verify

test-rust:
	@STEP_SHOW='^(test result|left out): ' $(STEP) rust-tests nice -n 10 .ci/rust

test-rest:
	@$(STEP) proto .ci/proto
	@STEP_SHOW='^(left out: |Success! [0-9])' $(STEP) terraform .ci/terraform
	@STEP_SHOW='^# (tests|pass|fail) ' $(STEP) verifier-tests node --test --test-reporter=tap services/acceptance/verifier/
	@STEP_SHOW='^# (tests|pass|fail) ' $(STEP) k6-tests node --test --test-reporter=tap loadtest/k6/
	@STEP_SHOW='^# (tests|pass|fail) |^left out: ' $(STEP) charts-tests nice -n 10 .ci/charts test
	@STEP_SHOW='^# (tests|pass|fail) ' $(STEP) images-tests .ci/images

demo: build ## start everything, make a 2-of-3 key, sign, verify outside; KEEP=1 stays up, EDGE=1 with Envoy in front
	@$(if $(EDGE),$(STEP) envoy .ci/envoy)
	@$(JAVA) io.coterie.acceptance.demo.Demo

# The first three of the drill's cases; `make soak PART=drills` has all of them.
drill: build ## kill each service and the database while a key signs, in two minutes; `make soak PART=drills` has more
	@STEP_SHOW='^(\[(INFO|ERROR)\] Tests run:.*[0-9]$$|progress: killed)' $(STEP) drill \
	  $(MAVEN) test -pl services/acceptance -am -Dcargo.skip=true -Dspotless.check.skip=true -Dsurefire.failIfNoSpecifiedTests=false \
	  '-Dtest=ProcessesTest#aSigner*+aTrace*+whateverIsKilledEveryRequest*'

bench: build ## measure key generation and signing against their floors; QUICK=1 for fewer runs, SHAPES=none for load
	@$(STEP) bench-core cargo build --release --manifest-path services/mpc-core/Cargo.toml -p bench-core
	@STEP_SHOW='^[a-z_0-9/ -]+ +time: ' $(STEP) criterion \
	  cargo bench --manifest-path services/mpc-core/Cargo.toml -p protocols --bench bls -- $(if $(QUICK),--quick)
	@STEP_SHOW='^[a-z0-9 ]+ [0-9]+/[0-9]+ .* ms' $(STEP) bench-frost \
	  cargo bench --manifest-path services/mpc-core/Cargo.toml -p protocols --bench frost -- $(if $(QUICK),2/3)
	@STEP_SHOW='^[a-z0-9 ]+ ([0-9]+/[0-9]+ )?.* ms' $(STEP) bench-ecdsa \
	  cargo run --release --locked --manifest-path services/mpc-core/bench-dkls23/Cargo.toml
	@$(STEP) jmh-build $(MAVEN) -pl services/channel -am test-compile dependency:build-classpath \
	  -Dmdep.includeScope=test -Dmdep.outputFile=target/test-classpath
	@STEP_SHOW='^(Benchmark|ChannelBenchmark[^:]*(:p0[.]50)?) ' $(STEP) jmh \
	  $(JAVA_HOME)/bin/java --enable-native-access=ALL-UNNAMED \
	  -cp services/channel/target/test-classes:services/channel/target/classes:$$(cat services/channel/target/test-classpath) \
	  io.coterie.channel.signal.ChannelBenchmark
	@$(JAVA) io.coterie.acceptance.bench.Bench

# Puts the rows of a scheme, which are in build/bench/SCHEME.csv, in the place of those that there were; others stay.
MERGE_ROWS = awk -F, -v rows=build/bench/$(1).csv '$$2 == "scheme" { if (!heads++) print; next } \
  (FILENAME == rows) == ($$2 == "$(1)")' build/bench/results.csv build/bench/$(1).csv >build/bench/merged.csv && \
  mv build/bench/merged.csv build/bench/results.csv

bench-circuits: build ## measure garbling beside bare AES, and exact signatures whole; RUNS=5, LONG=1 for all, RSA=1024
	@mkdir -p build/bench && touch build/bench/results.csv
	@set -o pipefail; cargo run --release --locked --manifest-path services/mpc-core/Cargo.toml -p circuits \
	  --example measure -- $(or $(RUNS),5) $(if $(LONG),long) $(if $(RSA),rsa-$(RSA)) | tee build/bench/circuit.csv
	@set -o pipefail; $(JAVA) io.coterie.acceptance.bench.ExactSignatures 40 | grep '^sign,' | \
	  tee -a build/bench/circuit.csv
	@$(call MERGE_ROWS,circuit)

bench-wbb: build/env.mk ## measure group membership and approvals alone; RUNS=20, LONG=1 for five tables of joins
	@mkdir -p build/bench && touch build/bench/results.csv
	@set -o pipefail; for bench in 'paillier-issuer --bench join' 'threshold-issuer --bench threshold'; do \
	  cargo bench --manifest-path services/mpc-core/Cargo.toml -p $$bench -- $(RUNS) $(if $(LONG),long) || exit 1; \
	done | tee build/bench/wbb.csv
	@$(call MERGE_ROWS,wbb)

bench-fairness: build ## measure what a greedy requester costs another, in processes, beside the bar; DURATION=30
	@$(JAVA) io.coterie.acceptance.bench.Fairness $(or $(DURATION),30)

bench-messaging: build/env.mk ## measure stored sends, and honest ones beside 1,000 hostile senders; SECONDS_EACH=60
	@STEP_SHOW='^(stored|online|hostile|honest|service)[ :,].*' $(STEP) bench-messaging $(MAVEN) test -pl services/messaging -am \
	  -Dspotless.check.skip=true -Dsurefire.failIfNoSpecifiedTests=false -Dtest=StoredSendsTest,HostileSendersTest \
	  -Dcoterie.test.compiler=-XX:TieredStopAtLevel=4 \
	  -Dcoterie.messaging.durable=true -Dcoterie.messaging.stored.sends=8000 \
	  -Dcoterie.messaging.hostile.senders=1000 -Dcoterie.messaging.hostile.seconds=$(or $(SECONDS_EACH),60)

lab: build build/lab/python ## measure with real delays (needs root); PAPER=1, LARGE=1, CONTACTS=1, QUICK=1: parts
	@$(STEP) delayer cargo build --release --locked --manifest-path loadtest/lab/delayer/Cargo.toml
	@loadtest/lab/run $(LAB_PARTIES) $(JAVA) io.coterie.acceptance.lab.Lab \
	  loadtest/lab/delayer/target/release/delayer $(LAB_PARTIES) $(LAB_EXTENT) \
	  && PYTHONPATH=build/lab/python loadtest/lab/plot build/lab \
	  || { status=$$?; [ $$status = 77 ] && exit 0 || exit $$status; }

build/lab/python: loadtest/lab/requirements.txt
	@$(STEP) plot-library python3 -m pip install --no-deps --require-hashes --upgrade --target $@ -r $<
	@touch $@

load: bin/coterie $(if $(K6),build/k6/sign.js) ## sign steadily and verify; KEY=, PROFILE=, RATE=10, DURATION=60, K6=1, RAMP=20
	@$(if $(K6),$(STEP) k6 .ci/k6 && loadtest/k6/run,bin/coterie load $(or $(KEY),demo) --yes --rate $(or $(RATE),10) \
	  --seconds $(or $(DURATION),60) --profile $(or $(PROFILE),build/demo/profile.properties))

# A seed belongs to the simulation that has printed it.
sim: build/env.mk ## simulate signers and core under faults: OF=core, PERCENT=1, RUNS=500; SEED=n replays, SHRINK=1 too
	@$(foreach of,$(or $(OF),signers $(if $(SEED),,core)),$(SIM_$(of)) &&) true

SIM_signers = COTERIE_RUNS_PERCENT=$(or $(PERCENT),100) $(MAVEN) test -pl services/simulation -am \
  -Dspotless.check.skip=true -Dsurefire.failIfNoSpecifiedTests=false -Dtest=SignersTest\#hostile_world_breaks_no_promise
SIM_core = COTERIE_RUNS_PERCENT=$(or $(PERCENT),100) \
  cargo test --manifest-path services/mpc-core/Cargo.toml --release -p sim -- --nocapture

soak: build ## what takes hours, in parts recorded in docs/verified.json; goes on where it stopped; PART=name JOBS=2
	@MAVEN='$(MAVEN)' .ci/soak $(PART)

soak-status: ## list the parts of `make soak` that have a fresh record, and those that have not
	@.ci/soak status

corpus: build/env.mk ## search the fuzzers' first inputs anew, as after a change of format
	@.ci/rust corpus

fuzz: build/env.mk ## feed the core's decoders what libFuzzer chooses; TARGET=frost_body SECONDS_EACH=60 KEEP=1
	@.ci/rust fuzz

IMAGES = $(patsubst %,build/images/%.ref,messaging coordinator signer)
CLUSTER_IMAGES = $(IMAGES) $(patsubst %,build/images/%.ref,envoy postgres)
# Where only locked packages may be taken, those of an earlier build are looked at again.
ifneq ($(IMAGE_REGISTRY)$(DEBIAN_LOCKED),)
.PHONY: $(CLUSTER_IMAGES)
endif
# A package that is newer than the lock is named, whatever else of the output is shown.
UNLOCKED = is not in \.ci/debian\.lock$$
export IMAGE_REGISTRY

images: build $(IMAGES) ## container images of the services in build/images, without a container engine, and their SBOMs
	@STEP_SHOW='^# (tests|pass|fail) ' $(STEP) images-tests .ci/images
	@cat $(IMAGES)

image-layers: build/classpath build/native/libsignal_jni.so ## lay out the layers of SERVICE= for deploy/images/Dockerfile
	@STEP_SHOW='$(UNLOCKED)' MAVEN='$(MAVEN)' $(STEP) image-layers \
	  deploy/images/build --stage $(or $(SERVICE),$(error SERVICE= names messaging, coordinator or signer))

sign-images: images ## sign what the images were built from, KEY=ed25519-private.pem; build/images/NAME.intoto.json
	@node deploy/images/provenance.mjs sign $(or $(KEY),$(error KEY= names the private key)) messaging coordinator signer

# A command is not part of an image.
starts: $(if $(filter cli,$(OF)),build,images) ## measure a signer's start from its image, BUSY=2 threads beside; OF=cli
	@set -o pipefail; $(JAVA) io.coterie.acceptance.bench.$(START) | grep '^  '

START = $(if $(filter cli,$(OF)),CommandStarts $(RUNS_OF_START),Rehearsal measure build/images $(RUNS_OF_START) \
  $(or $(BUSY),0))
RUNS_OF_START = $(or $(RUNS),5)

cluster-images: build $(CLUSTER_IMAGES)

# Together: one rehearsal records the class caches of all.
$(IMAGES) &: build/classpath build/native/libsignal_jni.so .ci/debian.lock \
  $(addprefix deploy/images/,build pack config.json sbom.mjs)
	@STEP_SHOW='^  ([a-z/.:0-9-]*coterie-|no class cache)|$(UNLOCKED)' MAVEN='$(MAVEN)' \
	  $(STEP) images deploy/images/build messaging coordinator signer

build/images/envoy.ref build/images/postgres.ref: build/images/%.ref: \
  build/classpath .ci/debian.lock deploy/images/build deploy/images/pack
	@STEP_SHOW='^  [a-z/.:0-9-]*coterie-|$(UNLOCKED)' $(STEP) image-$* deploy/images/build $*

charts: build ## package the helm charts into build/charts
	@$(STEP) charts .ci/charts

cluster-test: cluster-images charts ## install and use everything on the Kubernetes of KUBECONFIG; KEEP=1 leaves it
	@MAVEN='$(MAVEN)' STEP_SHOW='^progress: cluster' STEP_TAIL=80 $(STEP) cluster-test .ci/cluster-test

cluster-chaos: cluster-images charts ## kill, cut off, slow down and mistime its members; needs cc; KEEP=1 leaves it
	@MAVEN='$(MAVEN)' STEP_SHOW='^progress: (cluster|chaos)' STEP_TAIL=80 \
	  $(STEP) cluster-chaos .ci/cluster-test ClusterChaosTest coterie.cluster-chaos

record-hashes: build/env.mk ## add the hashes of what Maven takes and .mvn/checksums does not have, to be reviewed
	@$(STEP) record-hashes $(MAVEN) verify -DskipTests -Dspotless.check.skip=true \
	  -Daether.artifactResolver.postProcessor.trustedChecksums.record=true

fmt: build/classpath ## format every language
	@cargo fmt --all --manifest-path services/mpc-core/Cargo.toml
	@$(STEP) fmt-java $(MAVEN) -q spotless:apply
	@$(STEP) fmt-proto .ci/proto format

clean: ## remove what the build made
	rm -rf build bin services/mpc-core/target proto/node_modules services/acceptance/verifier/node_modules \
	  services/messaging-compat/node/node_modules loadtest/k6/node_modules
	find . -type d -name target -not -path './services/mpc-core/*' -prune -exec rm -rf {} +
