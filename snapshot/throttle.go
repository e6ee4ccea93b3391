package snapshot

import (
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// replan asks anew which CPUs are throttled: heat comes and goes while a session
// is open. The engines share the plan and read it before a stop, so it changes
// between two Takes alone.
func (s *Session) replan() error {
	ask := topology.Throttles
	if s.hooks.throttles != nil {
		ask = s.hooks.throttles
	}
	next, err := s.plan.With(ask(s.plan.Stop))
	if err != nil {
		return err
	}
	*s.plan = *next
	return nil
}

// throttleWarnings marks the throttled CPUs and says why they are, one warning
// for all of one reason.
func (s *Session) throttleWarnings(c *captured) {
	type kind struct {
		why    string
		worked bool
	}
	var order []kind
	cpus := map[kind][]int{}
	for i := range c.cpus {
		r := &c.cpus[i]
		why := s.plan.Throttle(int(r.CPU))
		if why == "" {
			continue
		}
		r.Flags |= kcdata.CPUThrottled
		k := kind{why, r.Flags&kcdata.CPUWorked != 0}
		if cpus[k] == nil {
			order = append(order, k)
		}
		cpus[k] = append(cpus[k], int(r.CPU))
	}
	for _, k := range order {
		did := " is throttled and did not record: "
		if k.worked {
			did = " is throttled, and recorded all the same: "
		}
		c.warn("cpu_throttled", "CPU "+topology.FormatCPUList(cpus[k])+did+k.why)
	}
}
