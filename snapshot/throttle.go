package snapshot

import (
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

func newThrottleReader(h engine.Hooks) *topology.ThrottleReader {
	if h.Throttles != nil {
		return topology.NewThrottleReader(h.Throttles)
	}
	return topology.NewThrottleReader(topology.Throttles)
}

// replan asks again which CPUs are throttled, since that changes while a session is open.
// The engines share the plan and read it before a stop, so it changes only between two
// Takes. If there is no answer in time, the plan stays as it is.
func (s *Session) replan() error {
	var hot map[int]string
	if hot, s.throttlesWhy = s.throttles.Read(s.plan.Stop); s.throttlesWhy != nil {
		return nil
	}
	next, err := s.plan.With(hot)
	if err != nil {
		return err
	}
	*s.plan = *next
	return nil
}

// throttleWarnings marks the throttled CPUs and says why they are throttled, in one
// warning for each reason. Under engine procfs no CPU is chosen to record, so the
// warning does not say whether these CPUs recorded.
func (s *Session) throttleWarnings(c *capture.Raw) {
	if s.throttlesWhy != nil {
		c.Warn("throttle_unknown", "which CPUs are throttled is not known, what was known before counts: "+s.throttlesWhy.Error())
	}
	type kind struct {
		why    string
		worked bool
	}
	stopped := c.Engine != EngineProcfs
	var order []kind
	cpus := map[kind][]int{}
	for i := range c.CPUs {
		r := &c.CPUs[i]
		why := s.plan.Throttle(int(r.CPU))
		if why == "" {
			continue
		}
		r.Flags |= kcdata.CPUThrottled
		k := kind{why, stopped && r.Flags&kcdata.CPUWorked != 0}
		if cpus[k] == nil {
			order = append(order, k)
		}
		cpus[k] = append(cpus[k], int(r.CPU))
	}
	for _, k := range order {
		who, did := "CPU "+topology.FormatCPUList(cpus[k])+" is throttled", ": "
		if len(cpus[k]) > 1 {
			who = "CPUs " + topology.FormatCPUList(cpus[k]) + " are throttled"
		}
		switch {
		case k.worked:
			did = ", and recorded all the same: "
		case stopped:
			did = " and did not record: "
		}
		c.Warn("cpu_throttled", who+did+k.why)
	}
}
