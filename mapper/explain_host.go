package mapper

import "carma/internal/units"

// RuleHost does not concern a GPU: the machine lacks host memory or processors.
const RuleHost Rule = "host"

// Why a task waits for its machine, regardless of GPUs.
const (
	ReasonHostMemory ReasonCode = "host-memory" // it needs Need host memory, Have of Of can be allocated
	ReasonHostCPUs   ReasonCode = "host-cpus"   // it needs More thousandths of a processor, Count of Limit are allocated
	ReasonHostLow    ReasonCode = "host-low"    // only Have of the machine's memory, Of, is available: nothing is launched
	ReasonHostKept   ReasonCode = "host-kept"   // the machine's memory is reserved for Task, which has waited too long
)

// hostLack says what a task lacks on its machine although GPUs would take it.
func (q *schedulingQueue) hostLack(w *Why, t *Task) Reason {
	no := q.hostShort(t)
	for i := 0; no.Code == "" && i < len(w.Fits); i++ {
		if h := q.host(q.byID[w.Fits[i]].Node); h != nil {
			_, no = q.hostFits(t, h)
		}
	}
	return no
}

// impossibleHost rejects a request that exceeds every machine.
func (l *ledger) impossibleHost(r Request) *ImpossibleError {
	var most units.Bytes
	cpus, known := int64(0), false
	for _, h := range l.hosts {
		if h.Known {
			most, cpus, known = max(most, h.most()), max(cpus, h.CPUs), true
		}
	}
	switch {
	case known && r.asks() > most:
		return &ImpossibleError{"host-mem", Reason{Code: ReasonTooMuchHost, Need: r.asks(), Of: most}}
	case known && r.CPUs > cpus:
		return &ImpossibleError{"cpus", Reason{Code: ReasonTooManyCPUs, More: int(r.CPUs), Limit: int(cpus)}}
	}
	return nil
}
