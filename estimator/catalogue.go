package estimator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/internal/units"

	"carma/internal/suggest"
	"carma/mapper/interference"
)

// Entry is one measured workload.
type Entry struct {
	// Name is the name of the workload, Aliases are other names. A name with an @ (the
	// figure of another campaign for the same workload) is accepted but never suggested.
	Name    string
	Aliases []string
	Model   string
	Dataset string
	Batch   int
	GPUs    int
	// Memory is the measured peak per GPU. Entries with 0 are left out.
	Memory units.Bytes
	// Loads are the workload's loads on each of its GPUs, and RunTime is its run time,
	// both without co-located tasks. They are empty and 0 if not measured.
	Loads   []interference.Load
	RunTime time.Duration
}

// Memory allocated above a measured peak. It comes from a second run of the same jobs
// (the solo profiles in configs/workloads). All but three of some fifty jobs peaked below
// this bound. After an OOM, recovery reruns such a job. The peaks of small jobs vary by
// the allocator's granularity, not in proportion to their size.
const (
	marginFactor = 1.02
	marginLeast  = 64 * units.MiB
)

// Catalogue estimates from measured workloads. It is safe for concurrent use.
type Catalogue struct {
	entries []Entry
}

// NewCatalogue returns a catalogue of the entries.
func NewCatalogue(entries []Entry) *Catalogue {
	c := &Catalogue{}
	for _, e := range entries {
		if e.Memory > 0 {
			c.entries = append(c.entries, e)
		}
	}
	// Sorted by batch, so that the first sufficient entry is the nearest. The other keys
	// make the order independent of the input's.
	slices.SortStableFunc(c.entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// UnknownModelError reports a name that is not in the catalogue.
type UnknownModelError struct {
	Name string
	// Nearest are similar known names, the likeliest first.
	Nearest []string
}

// Error returns one line with the suggestions.
func (e *UnknownModelError) Error() string {
	switch len(e.Nearest) {
	case 0:
		return fmt.Sprintf("unknown est-model %q; give the memory with --mem, for example --mem 12G", e.Name)
	case 1:
		return fmt.Sprintf("unknown est-model %q; did you mean %s?", e.Name, e.Nearest[0])
	}
	return fmt.Sprintf("unknown est-model %q; nearest are %s", e.Name, strings.Join(e.Nearest, ", "))
}

// Estimate answers q. A declared figure takes precedence over a name of the catalogue. A
// task without either gets whole GPUs. The only error is an [UnknownModelError].
func (c *Catalogue) Estimate(q Query) (Estimate, error) {
	if q.Declared > 0 {
		return Estimate{
			Memory: q.Declared, Point: q.Declared, Method: Declared,
			Detail: fmt.Sprintf("%s per GPU as declared with --mem", q.Declared),
		}, nil
	}
	if q.Model == "" {
		return wholeGPU("nothing is known about its memory, so it is watched before others join it; --mem or --est-model lets it share at once"), nil
	}
	name := fold(q.Model)
	if e, ok := c.workload(name); ok {
		if q.Batch == 0 || q.Batch == e.Batch || e.Model == "" {
			return exactly(measured(e, fmt.Sprintf("workload %s", e.Name))), nil
		}
		name = fold(e.Model + e.Dataset) // the same job at another batch size
	}
	entries, ok := c.model(name)
	if !ok {
		return Estimate{}, &UnknownModelError{Name: q.Model, Nearest: c.nearest(q.Model)}
	}
	return atBatch(onGPUs(entries, q.GPUs), q.Batch), nil
}

// Names returns all names that Estimate accepts as a model, sorted.
func (c *Catalogue) Names() []string {
	var names []string
	for _, e := range c.entries {
		names = append(names, e.Model, e.Name)
		names = append(names, e.Aliases...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || strings.Contains(n, "@") })
}

// workload finds an entry by its folded name or alias.
func (c *Catalogue) workload(name string) (Entry, bool) {
	for _, e := range c.entries {
		if fold(e.Name) == name {
			return e, true
		}
	}
	for _, e := range c.entries {
		if slices.ContainsFunc(e.Aliases, func(a string) bool { return fold(a) == name }) {
			return e, true
		}
	}
	return Entry{}, false
}

// model returns the entries of a folded model name, with or without data set.
func (c *Catalogue) model(name string) (entries []Entry, ok bool) {
	for _, e := range c.entries {
		if e.Model != "" && (fold(e.Model) == name || fold(e.Model+e.Dataset) == name) {
			entries = append(entries, e)
		}
	}
	return entries, len(entries) > 0
}

// onGPUs returns the entries that were measured on that many GPUs, or all if
// there are none.
func onGPUs(entries []Entry, gpus int) []Entry {
	same := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.GPUs != gpus })
	if len(same) > 0 {
		return same
	}
	return entries
}

// atBatch estimates from the entries of one model, which are sorted by batch
// size.
func atBatch(entries []Entry, batch int) Estimate {
	model := entries[0].Model
	if batch <= 0 {
		e := largest(entries)
		return measured(e, fmt.Sprintf("%s without a batch size, so its largest measured: %s", model, e.Name))
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Batch >= batch })
	if i < 0 {
		return large(fmt.Sprintf("%s was measured up to batch size %d only, so batch size %d gets whole GPUs; --mem lets it share",
			model, entries[len(entries)-1].Batch, batch))
	}
	at := entries[i].Batch
	e := largest(slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Batch != at }))
	if at == batch {
		return exactly(measured(e, fmt.Sprintf("%s at batch size %d (%s)", model, batch, e.Name)))
	}
	return measured(e, fmt.Sprintf("%s at batch size %d, the next measured above %d (%s)", model, at, batch, e.Name))
}

func largest(entries []Entry) Entry {
	return slices.MaxFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Memory, b.Memory), cmp.Compare(b.Name, a.Name))
	})
}

func measured(e Entry, what string) Estimate {
	upper := max(e.Memory.Scale(marginFactor), e.Memory+marginLeast)
	if e.GPUs > 1 {
		what += fmt.Sprintf(" on %d GPUs", e.GPUs)
	}
	return Estimate{
		Memory: upper, Point: e.Memory, Method: Measured,
		Detail: fmt.Sprintf("%s: %s measured, %s booked", what, e.Memory, upper),
	}
}

func exactly(e Estimate) Estimate {
	e.Exact = true
	return e
}

func wholeGPU(detail string) Estimate {
	return Estimate{WholeGPU: true, Method: WholeGPUs, Detail: detail}
}

func large(detail string) Estimate {
	e := wholeGPU(detail)
	e.Large = true
	return e
}

// fold makes BERT-base, bert_base and bert base the same text.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', ' ', '.', '/', '@', ':':
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// nearest returns up to four names that are similar to name or begin with it.
func (c *Catalogue) nearest(name string) []string {
	type candidate struct {
		name     string
		distance int
	}
	if len(name) > 64 { // no name is that long; the limit bounds the work
		return nil
	}
	var near []candidate
	for _, n := range c.Names() {
		d := suggest.Distance(fold(name), fold(n))
		switch {
		case d <= max(2, len(name)/3) && d < len(fold(name)):
		case len(name) >= 3 && strings.HasPrefix(fold(n), fold(name)):
			d = max(2, len(name)/3) // prefix matches sort after misspellings
		default:
			continue
		}
		near = append(near, candidate{n, d})
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	seen := map[string]bool{}
	for _, n := range near {
		if f := fold(n.name); !seen[f] && len(names) < 4 {
			seen[f] = true
			names = append(names, n.name)
		}
	}
	return names
}

// MeasuredPeak returns the measured memory per GPU of the workload called name, or of the
// model called name at exactly this batch size and number of GPUs. It returns false if
// that was not measured.
func (c *Catalogue) MeasuredPeak(name string, batch, gpus int) (units.Bytes, bool) {
	folded := fold(name)
	for _, e := range c.entries {
		if (fold(e.Name) == folded || fold(e.Model+e.Dataset) == folded || fold(e.Model) == folded) && e.Batch == batch && e.GPUs == gpus {
			return e.Memory, true
		}
	}
	return 0, false
}
