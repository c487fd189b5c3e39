package suite

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// limits are what a service may use of the machine; what is below deploy counts
// more. 0, and -1 processes, is no limit in Compose: then it is the daemon's.
func (t *translator) limits(c types.ServiceConfig, r *api.Submit) {
	t.setLimits(c.Name, r, c.CPUS, c.MemLimit, c.PidsLimit, "cpus", "mem_limit", "pids_limit")
	if c.Deploy == nil || c.Deploy.Resources.Limits == nil {
		return
	}
	l, at := c.Deploy.Resources.Limits, "deploy.resources.limits."
	t.setLimits(c.Name, r, float32(l.NanoCPUs), l.MemoryBytes, l.Pids, at+"cpus", at+"memory", at+"pids")
}

func (t *translator) setLimits(service string, r *api.Submit, cpus float32, memory types.UnitBytes, pids int64, ofCPUs, ofMemory, ofPids string) {
	switch {
	case cpus == 0:
	case !(cpus >= 0.01 && cpus <= 1e6):
		t.refuseAt(service, fmt.Sprintf("%v is not a number of processors from 0.01 on; write for example 4 or 1.5", cpus), strings.Split(ofCPUs, ".")...)
	default: // 0.1 is to stay 0.1
		r.CPUs, _ = strconv.ParseFloat(strconv.FormatFloat(float64(cpus), 'g', -1, 32), 64)
	}
	switch {
	case memory < 0:
		t.refuseAt(service, "less than nothing is not an amount of memory; write for example 512M or 12G", strings.Split(ofMemory, ".")...)
	case memory > 0:
		r.HostMem = int64(memory)
	}
	switch {
	case pids < -1:
		t.refuseAt(service, fmt.Sprintf("%d is not a number of processes; write for example 4096, or leave it out for the daemon's", pids), strings.Split(ofPids, ".")...)
	case pids > 0:
		r.Pids = pids
	}
}
