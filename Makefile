# Postern. `make demo` and `make test` do all set-up themselves; `make help` lists the rest.
SHELL = /bin/bash
SWIFT_FLAGS = --explicit-target-dependency-import-check error

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

packages: ## Install the Debian packages that are missing
	@scripts/packages

build: packages ## Debug build
	swift build $(SWIFT_FLAGS)

release: packages ## Release build of the command postern
	swift build $(SWIFT_FLAGS) -c release --product postern

deb: release ## Debian package of the release build, into .build/deb, looked at by lintian, apparmor_parser and systemd-analyze
	@scripts/packages dpkg-dev lintian apparmor
	@rm -rf .build/deb
	@scripts/deb .build/release/postern .build/deb
	@lintian --allow-root --fail-on error,warning .build/deb/postern_*.deb
	@apparmor_parser -Q -K packaging/debian/apparmor
	@set -o pipefail; unit=$$(mktemp -d) && trap 'rm -rf $$unit' EXIT && dpkg-deb -x .build/deb/postern_*.deb $$unit && \
		systemd-analyze security --offline=true --threshold=15 $$unit/usr/lib/systemd/system/postern.service | tail -1

RELEASES = bookworm trixie
test-deb: deb ## Install the package in a fresh Debian 12 and 13, relay a message each way, purge; as root; RELEASES
	@scripts/packages debootstrap iproute2
	@scripts/test-deb .build/deb/postern_*.deb $(RELEASES)

REPOSITORY = .build/apt
KEY =
apt-repository: deb ## Add the package to an apt repository, and sign it with a key of your gpg; KEY=fingerprint, REPOSITORY
	@test -n "$(KEY)" || { echo "KEY=FINGERPRINT names the key of your gpg that signs the repository"; exit 64; }
	@scripts/apt-repository $(REPOSITORY) $(KEY) .build/deb/postern_*.deb

test-apt-repository: ## Publish small packages, and let apt install them over file:// with a configuration of its own
	@scripts/packages dpkg-dev gnupg
	@scripts/test-apt-repository

release-check: packages ## Build package and SBOM, and check that this tree can be released; KEY=fingerprint signs the package; makes no tag
	@$(MAKE) --no-print-directory deb sbom
	@if [ -n "$(KEY)" ]; then $(MAKE) --no-print-directory apt-repository; fi
	@POSTERN_RELEASE_REPOSITORY=$(REPOSITORY) scripts/release-check

test-release-check: ## Whether release-check finds each fault of a small tree
	@scripts/packages dpkg-dev gnupg
	@scripts/test-release-check

image: deb ## Container image with the package and Postfix, an OCI archive in .build/image; as root, without a container engine
	@scripts/packages debootstrap
	@rm -rf .build/image
	@scripts/image .build/deb/postern_*.deb .build/image

test-image: image ## Look through the image, check the compose file, and relay a message each way with its parts; as root
	@scripts/packages docker-compose python3-yaml iproute2 postgresql-15
	@scripts/test-image .build/image/postern-*.oci.tar

demo: packages ## Play forward, reply, bounce and the rest through a real Postfix
	@scripts/build $(SWIFT_FLAGS) --product postern
	@scripts/build $(SWIFT_FLAGS) --product relay-demo
	@.build/debug/relay-demo

demo-sign-in: packages test-tools ## Sign in to a small app with the built-in page; AUTO=1: Chromium plays it
	@scripts/build $(SWIFT_FLAGS) --product postern
	@scripts/build $(SWIFT_FLAGS) --product sign-in-demo
	@.build/debug/sign-in-demo

# Independent verifiers of what Postern signs, of its HTTP API, and a browser for the users' page.
TEST_TOOLS = dkimpy==1.1.8 pynacl==1.6.2 schemathesis==4.32.5 pyjwt==2.15.1 cryptography==48.0.0 authlib==1.9.9 requests==2.34.2 axe-core-python==0.1.0 requests-oauthlib==2.0.0 oic==1.7.0 social-auth-core==7.0.0 django==5.2.19 django-allauth[socialaccount]==65.21.1 openapi-python-client==0.29.1 datamodel-code-generator==0.89.0 aiopenapi3==0.11.0
# A provider that others wrote, for sign-in by the operator's own; what it loads is only recommended.
LEMONLDAP = liblemonldap-ng-portal-perl starman libstring-random-perl libio-string-perl libcrypt-openssl-bignum-perl libconvert-base32-perl \
	libmime-tools-perl libunicode-string-perl libemail-sender-perl libimage-magick-perl libgd-securityimage-perl
test-tools: packages .build/test-tools/.installed
	@scripts/packages dpkg-dev iproute2 chromium chromium-driver prometheus postgresql-15 curl jq nginx-light caddy libapache2-mod-auth-openidc \
		opendkim rspamd postsrsd dovecot-lmtpd fonts-dejavu-core zbar-tools $(LEMONLDAP)
.build/test-tools/.installed: Makefile
	python3 -m venv .build/test-tools
	.build/test-tools/bin/pip install -q $(TEST_TOOLS)
	touch $@

test: packages test-tools models words check-format ## Every test, those on a real Postfix included
	@scripts/build $(SWIFT_FLAGS) --build-tests
	rm -rf .build/test-logs
	POSTERN_TEST_LOGS=$(CURDIR)/.build/test-logs scripts/run-tests
	scripts/search-logs .build/test-logs

check: packages words check-format ## Unit tests, stores on SQLite, format and words: for every change
	@POSTERN_CHECK=1 scripts/build $(SWIFT_FLAGS) --build-tests
	POSTERN_CHECK=1 POSTERN_TEST_ENGINES=sqlite POSTERN_TEST_SHARE=8 scripts/run-tests

MESSAGES = 5000
ROUNDS = 4
LANES = 16
soak-failures: packages ## Two relay hosts on one PostgreSQL, killed and restarted, and keys replaced, under load; MESSAGES, ROUNDS, LANES
	@scripts/packages postgresql-15
	swift build $(SWIFT_FLAGS) --build-tests
	POSTERN_SOAK_MESSAGES=$(MESSAGES) POSTERN_SOAK_ROUNDS=$(ROUNDS) POSTERN_SOAK_LANES=$(LANES) \
		swift test $(SWIFT_FLAGS) --skip-build --filter 'PostfixTests.RelayHostsTests/(hosts_failuresUnderLoad_loseNoMail|hosts_keyRotationUnderLoad_loseNoMail)'

HOURS = 3
soak: packages ## Two hosts for hours: mail, decisions, events, deletions and new keys; whether memory, files and latency stay; HOURS
	@scripts/packages postgresql-15
	export POSTERN_BENCH=1; for product in postern http-load MailBench; do swift build $(SWIFT_FLAGS) -c release --product $$product || exit 1; done
	.build/release/MailBench --hours $(HOURS) --plot .build/soak.svg --samples .build/soak.json --check

# Each benchmark takes its sizes as arguments: make bench MAIL_BENCH="--messages 100 --rounds 3" STORE_BENCH="--sizes 10000,100000"
DECISION_BENCH =
SIGN_IN_BENCH =
MAIL_BENCH =
STORE_BENCH =
SIDE_BY_SIDE_BENCH =
BENCHES = http-load AuthBench PolicyBench RelayBench DecisionBench SignInBench MailBench StoreBench SideBySideBench
bench: packages ## Benchmarks, in release builds, and a table of goals; fails where one is missed by more than the noise; also in .build/bench.json
	@scripts/packages opendkim postgresql-15
	export POSTERN_BENCH=1; for product in postern bench-filter $(BENCHES); do swift build $(SWIFT_FLAGS) -c release --product $$product || exit 1; done
	@rm -f .build/bench-goals.json
	.build/release/AuthBench
	.build/release/PolicyBench
	.build/release/RelayBench
	.build/release/DecisionBench $(DECISION_BENCH)
	.build/release/DecisionBench --engine postgres --only tail $(DECISION_BENCH)
	.build/release/SignInBench $(SIGN_IN_BENCH)
	.build/release/SignInBench --engine postgres $(SIGN_IN_BENCH)
	.build/release/MailBench $(MAIL_BENCH)
	.build/release/StoreBench $(STORE_BENCH)
	.build/release/SideBySideBench $(SIDE_BY_SIDE_BENCH)
	@scripts/bench-table

# Debug builds, as the tests have them. PolicyBench takes minutes without optimisation: HandWrittenTests stand for it.
bench-try: ## Each benchmark briefly in debug builds, whatever the figures: whether it still works
	@scripts/packages opendkim postgresql-15
	@mkdir -p .build/bench-try
	@for product in postern bench-filter $(BENCHES); do POSTERN_BENCH=1 scripts/build $(SWIFT_FLAGS) --product $$product || exit 1; done
	scripts/bench-try > .build/bench-try/log 2>&1 || { tail -40 .build/bench-try/log; exit 1; }

NAMES =
mutants: packages test-tools ## Whether the tests notice small faults: Tests/Mutants/mutants.txt, all in one build of a copy; NAMES
	scripts/mutants $(NAMES)

SECONDS = 60
chaos: packages ## Two hosts on one PostgreSQL, and one on SQLite, under mail, HTTP and commands: hung, killed, with wrong clocks …; SECONDS
	@scripts/packages postgresql-15
	swift build $(SWIFT_FLAGS) --build-tests
	POSTERN_CHAOS_SECONDS=$(SECONDS) swift test $(SWIFT_FLAGS) --skip-build --filter EventTests.ChaosTests

TARGETS =
fuzz: packages ## Each fuzz target for so many seconds, two at a time (0: once over its seeds); SECONDS, TARGETS
	@scripts/build --package-path Fuzzing --scratch-path .build/fuzzing --product fuzz
	scripts/fuzz $(SECONDS) $(TARGETS)

screenshots: packages test-tools ## Pictures of every page in .build/screenshots: four widths, light and dark
	@scripts/packages fonts-noto-cjk
	@scripts/build $(SWIFT_FLAGS) --build-tests
	POSTERN_SCREENSHOTS=all swift test $(SWIFT_FLAGS) --skip-build --filter 'PageLayoutTests|RelaySignInTests'

sbom: packages ## What a build is made of, with versions and licences, as SPDX: .build/postern.spdx.json
	@scripts/build $(SWIFT_FLAGS) --product postern
	scripts/sbom > .build/postern.spdx.json

models: packages ## Check the models of what hosts do side by side, with spin
	@scripts/packages spin
	scripts/check-models

format: ## Format all Swift files (.swift-format)
	scripts/check-format --write

check-format: ## Look whether all Swift files are formatted
	scripts/check-format

words: ## Words that scripts/words wants replaced, text from outside cut or compared by characters, and faults for mutants without a place
	scripts/check-words
	scripts/check-text
	scripts/mutants --texts

SUITES =
sanitize: packages test-tools ## The tests under AddressSanitizer, then under ThreadSanitizer; SUITES="StoreTests RelayCoreTests"
	scripts/sanitize address $(SUITES)
	scripts/sanitize thread $(SUITES)

soak-memory: packages ## Whether memory stays flat over 200,000 messages
	export POSTERN_BENCH=1; for product in postern bench-filter MailBench; do swift build $(SWIFT_FLAGS) -c release --product $$product || exit 1; done
	.build/release/MailBench --soak 200000 --check

.PHONY: help packages sbom build release deb test-deb apt-repository test-apt-repository release-check test-release-check image test-image demo demo-sign-in screenshots test-tools test check mutants bench-try soak soak-failures chaos bench fuzz models words format check-format sanitize soak-memory
.DEFAULT_GOAL = help
