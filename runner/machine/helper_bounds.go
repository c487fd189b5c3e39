package machine

import (
	"cmp"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/helpers"
)

// HelperBounds is the default share of the machine for a helper.
type HelperBounds struct {
	HostMem units.Bytes // limit; if 0, a part of a task's limit
	Reserve units.Bytes // reservation; if 0, a part of the limit
	CPUs    float64     // limit; if 0, a part of a task's limit
}

// Without a setting, a helper's memory limit is 1/helperPart of the largest limit of a
// task, and its processor limit is 1/helperCPUPart. 1/helperReserve of the memory limit
// is allocated. No value is less than the minimums below.
const (
	helperPart    = 8
	helperCPUPart = 4
	helperReserve = 8

	leastHelper   = 512 * units.MiB
	leastReserved = 256 * units.MiB
	leastCPUs     = 1
)

// BoundHelper sets the share of a helper's container.
func (b Bounds) BoundHelper(spec *containers.Spec, s api.Submit) {
	b.Default.HostMem = max(b.helperMem(), units.Bytes(s.HostReserve))
	b.Default.CPUs = min(b.Most.CPUs, cmp.Or(b.Helper.CPUs, b.Default.CPUs, max(b.Most.CPUs/helperCPUPart, leastCPUs)))
	b.Bound(spec, s, model.HostShare{})
}

// helperMem returns the memory limit of a helper that requests no amount.
func (b Bounds) helperMem() units.Bytes {
	return min(b.Default.HostMem, cmp.Or(b.Helper.HostMem, max(b.Most.HostMem/helperPart, leastHelper)))
}

// Reserved returns the resources allocated for a helper's container. As for tasks, this is the
// reservation, or the requested limit if there is no reservation, or a part of the default
// limit if neither is set. Processors are allocated only on request.
func (b Bounds) Reserved(s *api.Submit) helpers.Share {
	limit := b.helperMem()
	own := min(limit, cmp.Or(b.Helper.Reserve, max(limit/helperReserve, leastReserved)))
	return helpers.Share{HostMem: cmp.Or(s.HostReserve, s.HostMem, int64(own)), CPUs: cmp.Or(s.CPUsReserve, s.CPUs)}
}
