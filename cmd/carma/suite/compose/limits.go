package compose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// limits reads a service's resource limits. Limits below deploy take precedence. In
// Compose, 0 (and -1 for processes) means no limit; here it means the daemon's limit.
func (t *translator) limits(c types.ServiceConfig, r *api.Submit) {
	t.setLimits(c.Name, r, c.CPUS, c.MemLimit, c.PidsLimit, "cpus", "mem_limit", "pids_limit")
	if memory := c.MemReservation; memory > 0 {
		r.HostReserve = int64(memory)
	}
	if c.Deploy == nil {
		return
	}
	if l := c.Deploy.Resources.Reservations; l != nil {
		t.setReserved(c.Name, r, l)
	}
	if c.Deploy.Resources.Limits == nil {
		return
	}
	l, at := c.Deploy.Resources.Limits, "deploy.resources.limits."
	t.setLimits(c.Name, r, float32(l.NanoCPUs), l.MemoryBytes, l.Pids, at+"cpus", at+"memory", at+"pids")
}

// setReserved reads the memory to allocate for a service.
func (t *translator) setReserved(service string, r *api.Submit, l *types.Resource) {
	var booked api.Submit
	at := "deploy.resources.reservations."
	t.setLimits(service, &booked, float32(l.NanoCPUs), l.MemoryBytes, 0, at+"cpus", at+"memory", "")
	if booked.HostMem > 0 {
		r.HostReserve = booked.HostMem
	}
	r.CPUsReserve = booked.CPUs
}

func (t *translator) setLimits(service string, r *api.Submit, cpus float32, memory types.UnitBytes, pids int64, ofCPUs, ofMemory, ofPids string) {
	switch {
	case cpus == 0:
	case !(cpus >= 0.01 && cpus <= 1e6):
		t.refuseAt(service, fmt.Sprintf("%v is not a number of processors from 0.01 on; write for example 4 or 1.5", cpus), strings.Split(ofCPUs, ".")...)
	default: // avoids rounding: 0.1 stays 0.1
		r.CPUs, _ = strconv.ParseFloat(strconv.FormatFloat(float64(cpus), 'g', -1, 32), 64)
	}
	switch {
	case memory < 0:
		t.refuseAt(service, "a negative amount of memory; write for example 512M or 12G", strings.Split(ofMemory, ".")...)
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
