package testtask

import (
	"fmt"
	"time"
)

// WaitFor polls until done says true or an error, or for limit.
func WaitFor(limit time.Duration, done func() (bool, error)) error {
	deadline := time.Now().Add(limit)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("deadline passed after %v", limit)
		}
		time.Sleep(pause)
	}
}
