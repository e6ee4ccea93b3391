# Tests on other kernels and other machines, in guests under QEMU: see
# docs/testing.md. Everything else is .ci/run and plain go.

vmtest = go run ./internal/testvm/cmd/vmtest

# What needs a kernel: the objects, the pipeline, the trap.
packages = ./internal/bpf ./snapshot
# The tests of every change: the objects load and record, each engine's file is
# whole and says what the others' say, the trap's ways through.
quick = ^Test(InstructionCounts|ProbesNameTheRelease|Sample(OfASpinner|DeclinesItself|GivenUp)|Auto(TakesTheTrap|WithoutTheTrap)|MissingProgramsAreNamed|PullEqualsProcfsOnTheFixture|SectionIs.*|KnownStacks|CountsInTheFileEqualItsContainers|Trap(Loads|SectionIsPulls|PartsAreTheWhole|SeesEveryTask|Grows|SpillsAndTakesTails|ThatCannotHold))$$

.PHONY: vm-kernels vm-quick vm-all

vm-kernels:
	$(vmtest) kernels

vm-quick: vm-kernels
	$(vmtest) matrix -quick -limit 4m -run '$(quick)' $(packages)

vm-all: vm-kernels
	$(vmtest) matrix $(packages) ./internal/topology ./internal/procfs ./cmd/stackshot
