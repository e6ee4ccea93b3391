# Tests on other kernels and other machines, in guests under QEMU: see
# docs/testing.md. Everything else is .ci/run and plain go.

vmtest = go run ./internal/testvm/cmd/vmtest

# What needs a kernel: the objects, the pipeline, the trap.
packages = ./internal/bpf ./snapshot
# The tests of every change: what each engine captures, against the others.
quick = ^(TestObjects.*|TestProgram.*|TestLoad.*|TestEngine.*|TestDifferential.*|TestTrap(Is|Same|Whole).*|TestOneTaskSection.*)$$

.PHONY: vm-kernels vm-quick vm-all

vm-kernels:
	$(vmtest) kernels

vm-quick: vm-kernels
	$(vmtest) matrix -quick -limit 4m -run '$(quick)' $(packages)

vm-all: vm-kernels
	$(vmtest) matrix $(packages) ./internal/topology ./internal/procfs ./cmd/stackshot
