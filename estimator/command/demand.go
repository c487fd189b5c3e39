package command

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Kind is the way in which a demand names its GPUs.
type Kind int

// The kinds of demands.
const (
	Processes Kind = iota // a launcher's number of processes, with one GPU each
	Number                // a number of GPUs
	Index                 // indexes of GPUs
	Visible               // CUDA_VISIBLE_DEVICES
)

// Demand is the number of GPUs that a command names.
type Demand struct {
	Kind Kind
	// Count is the number of GPUs. All is set if the command uses all visible GPUs.
	Count int
	All   bool
	// Highest is the highest index, or -1 if none is named.
	Highest int
	// Default is set if Count is the launcher's default and no argument sets it.
	Default bool
	// From contains the words of the command that make the demand.
	From string
	Certainty
	// set contains the indexes. write returns the words that demand fewer GPUs.
	set   []int
	write func(gpus int) string
}

// gap reports whether the indexes skip a GPU, so that no number of GPUs fits them.
func (d *Demand) gap() bool { return d.Highest >= d.Count }

// beyond reports whether a demand needs more than a number of GPUs.
func (d *Demand) beyond(gpus int) bool { return d.Count > gpus || d.Highest >= gpus }

// count returns the demand of an option with a number of GPUs.
func count(kind Kind, title string, o option, n int, certain Certainty) Demand {
	return Demand{
		Kind: kind, Count: n, Highest: -1, From: strings.TrimSpace(title + " " + o.String()), Certainty: certain,
		write: func(gpus int) string { return o.with(strconv.Itoa(gpus)) },
	}
}

// indexes returns the demand of an option with GPU indexes.
func indexes(kind Kind, title string, o option, set []int, certain Certainty) Demand {
	slices.Sort(set)
	set = slices.Compact(set)
	d := Demand{Kind: kind, Count: len(set), Highest: -1, From: strings.TrimSpace(title + " " + o.String()), Certainty: certain, set: set}
	if len(set) > 0 {
		d.Highest = set[len(set)-1]
	}
	d.write = func(gpus int) string { return o.with(relisted(o.value, min(len(set), gpus))) }
	return d
}

// relisted returns the indexes 0 to n-1 (at least 0) in the notation of the list like.
func relisted(like string, n int) string {
	by, front, behind := ",", "", ""
	if i := strings.IndexAny(like, "0123456789"); i > 0 {
		front = like[:i]
	}
	if strings.HasSuffix(like, "]") {
		behind = "]"
	}
	for _, sep := range []string{":", " "} {
		if !strings.Contains(like, ",") && strings.Contains(strings.TrimPrefix(like, front), sep) {
			by = sep
		}
	}
	var all []string
	for i := range max(1, n) {
		all = append(all, strconv.Itoa(i))
	}
	return front + strings.Join(all, by) + behind
}

// maxGPUs is the largest number that counts as a number of GPUs.
const maxGPUs = 1024

// number parses a number of GPUs from 0 to maxGPUs.
func number(word string) (int, bool) {
	n, err := strconv.Atoi(strings.Trim(word, `"' `))
	return n, err == nil && n >= 0 && n <= maxGPUs
}

// listOf parses a list of indexes such as 0,1 or [0, 1] or 0:1 or 0-3.
func listOf(text string) (set []int, ok bool) {
	text = strings.Trim(text, `[](){}"' `)
	text = strings.TrimRight(text, ",")
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",:; ", c) }) {
		first, last, ranged := strings.Cut(part, "-")
		from, fine := number(first)
		to := from
		if ranged && fine {
			to, fine = number(last)
		}
		if !fine || to < from {
			return nil, false
		}
		for i := from; i <= to; i++ {
			set = append(set, i)
		}
	}
	return set, len(set) > 0 && len(set) <= maxGPUs
}

// join merges demands for GPUs by index: cuda:0 and cuda:1 together are two GPUs.
func (r *reader) join() {
	for _, all := range [][]Demand{r.indexes, r.visibles} {
		if len(all) == 0 {
			continue
		}
		d := all[0]
		d.set = slices.Clone(d.set)
		for _, more := range all[1:] {
			if more.Certainty < d.Certainty {
				r.Demands = append(r.Demands, more)
				continue
			}
			if more.Certainty > d.Certainty {
				r.Demands = append(r.Demands, d)
				d = more
				continue
			}
			before := len(d.set)
			d.set = append(slices.Clone(d.set), more.set...)
			slices.Sort(d.set)
			if d.set = slices.Compact(d.set); len(d.set) == before {
				continue
			}
			if more.Highest > d.Highest {
				d.write = more.write
			}
			if d.Count = len(d.set); strings.Count(d.From, " and ") < 3 {
				d.From += " and " + more.From
			}
			d.Highest = d.set[len(d.set)-1]
		}
		r.Demands = append(r.Demands, d)
	}
	slices.SortStableFunc(r.Demands, func(a, b Demand) int { return cmp.Compare(b.Certainty, a.Certainty) })
}
