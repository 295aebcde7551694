# Copyright 2026 The Vitess Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Every target is one script in scripts/, which says what it does and can be
# run by itself. "##" comments are what "make help" prints.

.DEFAULT_GOAL := help
# A Vitess version, or a checkout to make a patch for, STOCK=1 for Vitess without
# the patch, RACE=1 for the race detector, RUN for the tests to run.
export VITESS ?= v0.24.4
export STOCK RACE RUN DEMO_ARGS VITESS_DIR FUZZTIME
# The stages use all cores themselves, and must not mix what they print.
.NOTPARALLEL:

##@ To try it
.PHONY: demo
demo: ## A real cluster merges two shards under load. STOCK=1 shows today's Vitess failing at it
	@exec scripts/demo.sh $(DEMO_ARGS)

.PHONY: demo-short
demo-short: ## The same, with a short load
	@exec scripts/demo.sh -short $(DEMO_ARGS)

.PHONY: test
test: ## Everything below, from a clean clone: 15 to 45 minutes the first time
	@exec scripts/test.sh

##@ To build it
.PHONY: mysql
mysql: ## Find or bring a MySQL. Last line: the prefix for VT_MYSQL_ROOT
	@exec scripts/mysql.sh

.PHONY: vitess
vitess: ## Make or update the patched tree, .work/vitess-$(VITESS). STOCK=1: unpatched. Last line: its path
	@exec scripts/vitess.sh

.PHONY: vttablet
vttablet: ## Build bin/vttablet, patched. STOCK=1: bin/vttablet-stock
	@exec scripts/build.sh vttablet

.PHONY: cluster-bins
cluster-bins: ## Build what else a cluster needs: bin/{mysqlctl,vtctld,vtctldclient,vtgate,etcd}
	@exec scripts/build.sh cluster

##@ To work on it
.PHONY: hooks-save
hooks-save: ## Take edits made in .work/vitess-$(VITESS) back into this repository
	@exec scripts/hooks-refresh.sh

.PHONY: lint
lint: ## go vet, gofumpt and goimports
	@exec scripts/lint.sh

.PHONY: unit
unit: ## Test the package alone: no MySQL, no Vitess tree. RACE=1: with the race detector
	@exec scripts/unit.sh

.PHONY: intree
intree: ## Test the package inside Vitess, on a real MySQL. RUN=regex (default ^TestMerge), RACE=1, STOCK=1
	@exec scripts/intree.sh

.PHONY: suite
suite: ## Vitess's own whole vreplication test suite in the patched tree (four minutes)
	@exec scripts/intree.sh -all

.PHONY: patch
patch: ## One commit for Vitess, ready for git am. VITESS_DIR=path: for that checkout. Last line: its path
	@exec scripts/patch.sh $(PATCH_ARGS)

.PHONY: patch-check
patch-check: ## Prove that it applies, builds, and passes Vitess's checks and tests (20 minutes). PATCH_ARGS=-quick: 5
	@exec scripts/patch-check.sh $(PATCH_ARGS)

.PHONY: matrix
matrix: ## All of that on every supported release line of Vitess. LINES="v0.23.3" names some
	@exec scripts/matrix.sh $(LINES)

.PHONY: faults
faults: ## The demo, while vttablet and mysqld of the target are killed 50 times. FAULTS=5
	@exec scripts/demo.sh -faults $(or $(FAULTS),50) $(DEMO_ARGS)

.PHONY: e2e
e2e: ## Merge workflows on real clusters: lookup vindex, _reverse, reparent, ... (about ten minutes). E2E_ARGS="lookup reverse", "-list"
	@exec scripts/e2e.sh $(E2E_ARGS)

.PHONY: sim
sim: ## Random histories on a model of MySQL, with crashes. SIM_ARGS="-n 10000 -seed 1", or "-scenario testdata", "-everywhere -n 10", "-h"
	@exec scripts/sim.sh $(SIM_ARGS)

.PHONY: differential
differential: ## The model of MySQL against MySQL: the same statements, the same errors and rows. DIFF_ARGS="-n 1000 -seed 1"
	@exec scripts/differential.sh $(DIFF_ARGS)

.PHONY: fuzz
fuzz: ## Fuzz the net effect of a window against plain replay. FUZZTIME=5m
	@exec scripts/fuzz.sh

.PHONY: mutants
mutants: ## Plant bugs in the package, one after the other: the simulator, the fuzzer or the tests find each (3 minutes). MUTANTS_ARGS="-n 3000 -seed 1"
	@exec scripts/mutants.sh $(MUTANTS_ARGS)

.PHONY: bench
bench: ## Measure: drains of backlogs with and without conflicts, against stock (10 to 15 minutes). BENCH_ARGS="-n 10000 -rounds 1"
	@exec scripts/bench.sh $(BENCH_ARGS)

.PHONY: storm
storm: ## Run the demo and draw its conflicts, second by second. DEMO_ARGS="-save" renews docs/storm.svg
	@exec scripts/storm.sh $(DEMO_ARGS)

.PHONY: clean
clean: ## Remove what was built. What was downloaded or edited under .work stays
	rm -rf bin .work/test

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
