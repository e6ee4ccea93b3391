	.text
	.balign 16
	.globl bare
	.type bare, %function
bare:
	.fill 16, 1, 0
	.type not_exported, %function
not_exported:
	.fill 16, 1, 0
	.globl exported
	.type exported, %function
exported:
	.fill 16, 1, 0
	.size exported, 16
	.section .note.GNU-stack,"",%progbits
