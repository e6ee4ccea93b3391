package extract

import (
	"encoding/hex"
	"fmt"
)

func parseHex(s string) ([]byte, error) { return hex.DecodeString(s) }

// BootName writes a boot id as /proc has it.
func BootName(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
