# The program with its man pages and completions, by make and make install. The rest is
# what takes too long for .ci/run, and tests on other kernels and other machines, in
# guests under QEMU: see docs/testing.md. Everything else is .ci/run and plain go.

PREFIX ?= /usr/local
bindir ?= $(PREFIX)/bin
mandir ?= $(PREFIX)/share/man
bashdir ?= $(PREFIX)/share/bash-completion/completions
zshdir ?= $(PREFIX)/share/zsh/site-functions
fishdir ?= $(PREFIX)/share/fish/vendor_completions.d

# What is built before it is installed: `sudo make install` after `make` needs no Go.
built = .build
program = $(built)/stackshot

.PHONY: all install uninstall clean

all: $(built)/done

$(program): go.mod $(shell find cmd internal kcdata snapshot workqueue bumpalloc -type f ! -name '*_test.go' ! -path '*/testdata/*')
	CGO_ENABLED=0 go build -trimpath -ldflags=-s -o $@ ./cmd/stackshot

# The pages and completions are of the program's own texts.
$(built)/done: $(program)
	rm -rf $(built)/man && mkdir -p $(built)/man
	$(program) man $(built)/man
	$(program) completion bash >$(built)/stackshot.bash
	$(program) completion zsh >$(built)/_stackshot
	$(program) completion fish >$(built)/stackshot.fish
	touch $@

install: all
	install -d $(addprefix "$(DESTDIR)",$(bindir) $(mandir)/man1 $(mandir)/man7 $(bashdir) $(zshdir) $(fishdir))
	install -m 755 $(program) "$(DESTDIR)$(bindir)/stackshot"
	install -m 644 $(built)/man/*.1 "$(DESTDIR)$(mandir)/man1/"
	install -m 644 $(built)/man/*.7 "$(DESTDIR)$(mandir)/man7/"
	install -m 644 $(built)/stackshot.bash "$(DESTDIR)$(bashdir)/stackshot"
	install -m 644 $(built)/_stackshot "$(DESTDIR)$(zshdir)/_stackshot"
	install -m 644 $(built)/stackshot.fish "$(DESTDIR)$(fishdir)/stackshot.fish"

# What install made, and no directory: others may have put something there.
uninstall:
	rm -f "$(DESTDIR)$(bindir)/stackshot" "$(DESTDIR)$(bashdir)/stackshot" "$(DESTDIR)$(zshdir)/_stackshot" "$(DESTDIR)$(fishdir)/stackshot.fish"
	rm -f "$(DESTDIR)$(mandir)"/man1/stackshot.1 "$(DESTDIR)$(mandir)"/man1/stackshot-*.1 "$(DESTDIR)$(mandir)"/man7/stackshot-where.7

clean:
	rm -rf $(built)

vmtest = go run ./internal/testvm/cmd/vmtest

# What is run on every other machine, beside the tests that its layout names
# (internal/testvm/layout.go).
common = ^Test(Layout|RecordsAre|KnownStates|CountsInTheFileEqual|WhatEachCPURan|TrapLoads|RealMachine|Doctor)

.PHONY: lab scenes vm race fuzz bench others long vm-kernels vm-all vm-docs

# What no change must pass, each for what it proves (docs/testing.md), as root. lab, scenes and
# bench want the machine for themselves.
lab scenes vm race fuzz bench others:
	.ci/run $@

# About three hours on two CPUs, on this machine, as root: all tests in their long forms,
# 10,000 captures that leave nothing behind, then each fuzz target for 5 minutes, as many
# at once as there are CPUs.
long:
	STACKSHOT_LONG=1 TESTLIMIT=90m .ci/run -k unit live lab
	STACKSHOT_LAB=1 STACKSHOT_REQUIRE_BPF=1 STACKSHOT_CAPTURES=10000 go test -count=1 -timeout 2h -v -run '^TestTrapLoopLeavesNothing$$' ./snapshot
	STACKSHOT_LAB=1 STACKSHOT_REQUIRE_BPF=1 STACKSHOT_SCENES=all go test -count=1 -timeout 1h -v -run '^TestFirstScreens$$' ./cmd/stackshot
	STACKSHOT_LONG=1 .ci/run bench
	FUZZTIME=5m FUZZLIMIT=15m .ci/run fuzz

vm-kernels:
	$(vmtest) kernels

# Hours. One machine after the other; by hand, machine for machine, with -only.
vm-all: vm-kernels
	STACKSHOT_LONG=1 STACKSHOT_REQUIRE_VM=1 go test -count=1 -timeout 1h ./internal/testvm/...
	STACKSHOT_LONG=1 STACKSHOT_REQUIRE_VM=1 go test -count=1 -timeout 2h -run '^Test(Panic|ExtractInCaptureKernel)$$' ./internal/arm
	$(vmtest) matrix -narrow '$(common)' -save .testvm/matrix.json ./internal/bpf ./snapshot ./internal/topology ./internal/procfs ./internal/hanglab './cmd/stackshot:^Test(Doctor|HangLabTogether)$$'

# The tables of the documents, from what vm-all saved.
vm-docs:
	$(vmtest) table -testing docs/testing.md -support docs/kernel-support.md .testvm/matrix*.json
