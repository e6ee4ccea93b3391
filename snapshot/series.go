package snapshot

import "fmt"

// Prepare makes everything ready that a Take of r needs as the machine is now: it
// maps, populates and locks the memory. Without it the first Take does this. Errors: as Take.
func (s *Session) Prepare(r Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	sc, err := s.scope(r)
	if err != nil {
		return err
	}
	if err := s.engine.Prepare(s.firstSize(sc)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}
