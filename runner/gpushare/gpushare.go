// Package gpushare has the programs that take a share of a GPU's memory by design, as inference
// servers do: it estimates what a task's program takes, and limits the program to the memory
// that the task declares.
package gpushare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carma/containers"
	"carma/estimator"
	"carma/estimator/command"
	"carma/estimator/servers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/record"
	"carma/runner/request"
)

// shareMethod is the method of an estimate for a program that takes a share of a GPU by
// design.
const shareMethod = "share"

// GPUs has what the estimates need of the machine's GPUs.
type GPUs struct {
	Least, Most units.Bytes // the smallest and the largest capacity
	Headroom    units.Bytes // memory of each GPU that the mapper leaves free
}

// Recognise records whether a task's program takes a share of a GPU by design, and
// returns a line about that for the submitter.
func (m GPUs) Recognise(rec *record.Record, read *command.Reading) (line []string, err error) {
	sub := &rec.Submit
	if sub.GPUShare == "off" || sub.NoGPU || sub.Exclusive {
		return nil, nil
	}
	if wrong, is := errors.AsType[*servers.ShareError](read.Share); is {
		return nil, request.Errorf(422, "command: %v; --gpu-share off, and carma does not look at it", wrong)
	}
	if read.Share != nil || read.Server == nil {
		return nil, read.Share
	}
	rec.Takes = read.Server
	return []string{m.takesLine(rec)}, nil
}

// takesLine returns a line with the recognised program, and the memory that is allocated or set
// for it.
func (m GPUs) takesLine(rec *record.Record) string {
	f, mem := rec.Takes, units.Bytes(rec.Submit.Mem)
	what := fmt.Sprintf("%s (%s)", f.Name, f.By)
	switch {
	case f.Share == 0:
		return what + ": " + f.Note
	case mem > 0 && f.Sets() != "" && m.canSetShare(f, mem):
		return fmt.Sprintf("%s: carma sets %s so that it takes the %s of --mem; --gpu-share off leaves it alone", what, f.Sets(), mem)
	case mem > 0:
		return fmt.Sprintf("%s takes %s of a GPU's memory (%s), at least %s; booked are the %s of --mem", what, partText(f.Share), f.From, takesOf(f, m.Least), mem)
	}
	e, _ := m.Estimate(rec)
	return e.Detail + "; --mem says another amount, --gpu-share off books as for other tasks"
}

// Estimate returns the estimate of a task if its program takes a known share of a GPU. ok is
// false if the task's memory is estimated by another method.
func (m GPUs) Estimate(rec *record.Record) (e estimator.Estimate, ok bool) {
	f := rec.Takes
	if f == nil || f.Share <= 0 || rec.Submit.Mem > 0 || rec.Submit.Exclusive || m.Least <= 0 {
		return e, false
	}
	what := fmt.Sprintf("%s (%s) takes %s of a GPU's memory (%s)", f.Name, f.By, partText(f.Share), f.From)
	if takesOf(f, m.Most) > m.Most-m.Headroom {
		return estimator.Estimate{WholeGPU: true, Large: true, Method: shareMethod, Detail: what + ", so it gets whole GPUs"}, true
	}
	e = estimator.Estimate{Memory: takesOf(f, m.Least), Method: shareMethod}
	e.Point = e.Memory
	e.Share = int64(math.Ceil(1e6 * float64(e.Memory) / float64(m.Least)))
	booked := e.Memory.String()
	if m.Least != m.Most {
		booked = fmt.Sprintf("%s to %s, by GPU,", e.Memory, takesOf(f, m.Most))
	}
	e.Detail = fmt.Sprintf("%s: %s booked", what, booked)
	return e, true
}

// takesOf returns the GPU memory that a program takes of a GPU.
func takesOf(f *servers.Found, capacity units.Bytes) units.Bytes {
	return min(capacity, capacity.Scale(f.Share)+units.Bytes(f.Beside))
}

// canSetShare reports whether the program can be limited to an amount of memory on every
// GPU.
func (m GPUs) canSetShare(f *servers.Found, memory units.Bytes) bool {
	return given(f, memory, m.Most) != ""
}

// given returns the share to give a program so that it takes an amount of a GPU, rounded
// down to a thousandth, or "" if there is none.
func given(f *servers.Found, memory, capacity units.Bytes) string {
	share := float64(memory-units.Bytes(f.Beside))/float64(max(capacity, 1)) - f.Less
	if thousandths := int(1000 * min(share, 1)); thousandths > 0 {
		return strconv.FormatFloat(float64(thousandths)/1000, 'f', -1, 64)
	}
	return ""
}

// Set sets the flag or the variable that limits a program to its declared memory, on the
// largest of its GPUs. capacity returns the memory of a GPU.
func Set(spec *containers.Spec, rec *record.Record, grants []model.Grant, capacity func(model.GPUID) units.Bytes) {
	f := rec.Takes
	if f == nil || len(grants) == 0 || rec.Submit.Mem <= 0 || rec.Task.NextExclusive || f.Flag == "" && f.Variable == "" {
		return
	}
	least, largest := grants[0].Memory, units.Bytes(0)
	for _, g := range grants {
		least, largest = min(least, g.Memory), max(largest, capacity(g.GPU))
	}
	share := given(f, least, largest)
	switch {
	case share == "":
	case f.Flag != "":
		spec.Command = append(slices.Clone(spec.Command), f.Flag, share)
	case !slices.ContainsFunc(spec.Env, func(kv string) bool { return strings.HasPrefix(kv, f.Variable+"=") }):
		spec.Env = append(spec.Env, f.Variable+"="+share)
	}
}

func partText(share float64) string { return strconv.FormatFloat(100*share, 'f', -1, 64) + " %" }
