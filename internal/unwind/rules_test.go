package unwind

import "testing"

// A CIE that says: the CFA is register 7 + 8, the return address (16) is at CFA - 8.
var plainCIE = &cie{codeAlign: 1, dataAlign: -8, retReg: 16, instructions: []byte{0x0c, 7, 8, 0x90, 1}}

// A register that the CIE gives no rule has none after restore. With "same value"
// the stack pointer of the caller would be the callee's.
func TestRestoreWithoutCommonRule(t *testing.T) {
	for name, restore := range map[string][]byte{"restore": {0xc7}, "restore_extended": {0x06, 7}} {
		f := &fde{cie: plainCIE, instructions: append([]byte{0x14, 7, 3}, restore...)} // val_offset
		got, err := (&frameSection{}).rulesAt(f, 0)
		if _, found := findRule(got.regs, 7); err != nil || found {
			t.Errorf("%s: %+v, %v", name, got.regs, err)
		}
		if _, found := findRule(got.regs, 16); !found {
			t.Errorf("%s: the return address has no rule: %+v", name, got.regs)
		}
	}
}

// gdb, libgcc and libunwind take def_cfa_register after an expression: the offset is
// the last one that was given.
func TestCFARegisterAfterExpression(t *testing.T) {
	f := &fde{cie: plainCIE, instructions: []byte{0x0e, 16, 0x0f, 2, 0x77, 99, 0x0d, 6}}
	got, err := (&frameSection{}).rulesAt(f, 0)
	if c := got.cfa; err != nil || c.kind != ruleRegister || c.reg != 6 || c.offset != 16 {
		t.Errorf("%+v, %v", c, err)
	}
}
