# Postern. `make demo` and `make test` do all set-up themselves.
SWIFT_FLAGS = --explicit-target-dependency-import-check error

build:
	swift build $(SWIFT_FLAGS)
.PHONY: build
