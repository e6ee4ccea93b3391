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
	install -d $(addprefix "$(DESTDIR)",$(bindir) $(mandir)/man1 $(bashdir) $(zshdir) $(fishdir))
	install -m 755 $(program) "$(DESTDIR)$(bindir)/stackshot"
	install -m 644 $(built)/man/*.1 "$(DESTDIR)$(mandir)/man1/"
	install -m 644 $(built)/stackshot.bash "$(DESTDIR)$(bashdir)/stackshot"
	install -m 644 $(built)/_stackshot "$(DESTDIR)$(zshdir)/_stackshot"
	install -m 644 $(built)/stackshot.fish "$(DESTDIR)$(fishdir)/stackshot.fish"

# What install made, and no directory: others may have put something there.
uninstall:
	rm -f "$(DESTDIR)$(bindir)/stackshot" "$(DESTDIR)$(bashdir)/stackshot" "$(DESTDIR)$(zshdir)/_stackshot" "$(DESTDIR)$(fishdir)/stackshot.fish"
	rm -f "$(DESTDIR)$(mandir)"/man1/stackshot.1 "$(DESTDIR)$(mandir)"/man1/stackshot-*.1

clean:
	rm -rf $(built)

vmtest = go run ./internal/testvm/cmd/vmtest

# What needs a kernel: the objects, the pipeline, the trap.
packages = ./internal/bpf ./snapshot
# The tests of every change on the newest kernel and on 6.12: the objects load and record,
# each engine's file is whole and says what the others' say, user memory, waits.
both = InstructionCounts|ProbesNameTheRelease|Sample(OfASpinner|DeclinesItself|GivenUp)|AutoTakesTheTrap|PullEqualsProcfsOnTheFixture|KnownStacks|CountsInTheFileEqualItsContainers|Trap(Loads|SectionIsPulls|SeesEveryTask)|UserStacksOfAStillWorld|DirectMapOfThisMachine|MapleTreeIsWhatProcSays|ScanIsTheFields|FilesInTheWindow|FilesOfTheFixture|EndsChangeBeforeThePass|EndsOfAllKinds|SysrqEqualsTrapOnTheFixture
# On one of the two: the trap's ways through on 6.12, where it lets interrupts in (with
# them off step live of .ci/run takes these ways, on its own kernel); on the newest the
# programs that the kernel lacks, and stacks of user programs. vm-all runs both lists
# on both kernels, and what is the same on any kernel (SectionIs.*, AutoWithoutTheTrap).
quick612 = ^Test($(both)|Trap(PartsAreTheWhole|Grows|SpillsAndTakesTails|ThatCannotHold)|UserWalkOfEveryThread)$$
quicknew = ^Test($(both)|MissingProgramsAreNamed|UserStack|UserProofKperf)$$

# Files that threads wait at, and who has their other ends: where quick is not run, too. On
# arm64 without TestFilesOfTheFixture, which would load the trap once more: minutes.
ends = ^Test(FilesInTheWindow|FilesOfTheFixture|EndsOfAllKinds)$$

# What is run on every other machine, beside the tests that its layout names
# (internal/testvm/layout.go).
common = ^Test(Layout|RecordsAre|KnownStates|KnownStacks|CountsInTheFileEqual|WhatEachCPURan|TrapLoads|RealMachine|Doctor)

.PHONY: lab scenes vm race fuzz bench others long vm-kernels vm-quick vm-all vm-docs

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
	STACKSHOT_LAB=1 STACKSHOT_REQUIRE_BPF=1 STACKSHOT_HANGLAB=all go test -count=1 -timeout 1h -v -run '^TestHangLabAlone$$' ./snapshot
	STACKSHOT_LAB=1 STACKSHOT_REQUIRE_BPF=1 STACKSHOT_SCENES=all go test -count=1 -timeout 1h -v -run '^TestFirstScreens$$' ./cmd/stackshot
	STACKSHOT_LONG=1 .ci/run bench
	FUZZTIME=5m FUZZLIMIT=15m .ci/run fuzz

vm-kernels:
	$(vmtest) kernels

# 6.1 has no trap: what loads there, and why the rest does not. The hang laboratory, all
# of it at once, on each of the three.
vm-quick: vm-kernels
	$(vmtest) -kernel 6.1 -limit 5m -- ./internal/bpf -run '^Test(InstructionCounts|ProbesNameTheRelease)$$'
	$(vmtest) -kernel 6.1 -limit 5m -- ./cmd/stackshot -run '^TestHangLabTogether$$'
	$(vmtest) -kernel 6.12 -limit 5m -- ./internal/cgroups
	$(vmtest) -kernel 6.12 -limit 5m -- ./internal/arm
	$(vmtest) -kernel newest -limit 5m -- ./cmd/stackshot -run '^TestArm(Killed)?$$'
	$(vmtest) matrix -only '6.1 ×2' -limit 5m -run '$(ends)' $(packages)
	$(vmtest) matrix -only '6.12 arm64 ×2' -limit 10m -run '$(ends)' -skip '^TestFilesOfTheFixture$$' $(packages)
	$(vmtest) matrix -quick -only '6.12 ×2' -limit 15m -run '$(quick612)' $(packages) './cmd/stackshot:^TestHangLabTogether$$'
	$(vmtest) matrix -quick -only 'newest ×2' -limit 15m -run '$(quicknew)' $(packages) './cmd/stackshot:^TestHangLabTogether$$'

# Hours. One machine after the other; by hand, machine for machine, with -only.
vm-all: vm-kernels
	STACKSHOT_LONG=1 STACKSHOT_LAB=1 STACKSHOT_REQUIRE_VM=1 go test -count=1 -timeout 1h ./internal/testvm/...
	STACKSHOT_LONG=1 STACKSHOT_LAB=1 STACKSHOT_REQUIRE_VM=1 go test -count=1 -timeout 2h -run '^Test(Panic|ExtractInCaptureKernel)$$' ./internal/arm
	$(vmtest) matrix -narrow '$(common)' -save .testvm/matrix.json $(packages) ./internal/topology ./internal/procfs ./internal/hanglab './cmd/stackshot:^Test(Doctor|HangLabTogether)$$'

# The tables of the documents, from what vm-all saved.
vm-docs:
	$(vmtest) table -testing docs/testing.md -support docs/kernel-support.md .testvm/matrix*.json
