package report

import (
	"cmp"
	"fmt"
	"slices"

	"carma/mapper/model"
)

// shownKinds is the number of kinds of tasks with their own colour; the others share one.
const shownKinds = 9

// kindRanks assigns colours to kinds of tasks, the same under all policies, in order of
// GPU time.
type kindRanks struct {
	ranks  map[string]int // only for look-up
	legend []legendEntry
}

func (k kindRanks) class(kind string) string {
	if n, ok := k.ranks[kind]; ok {
		return fmt.Sprintf("k%d", n)
	}
	return "rest"
}

// number returns the index of a kind in the legend; all other kinds come last.
func (k kindRanks) number(kind string) int {
	if n, ok := k.ranks[kind]; ok {
		return n
	}
	return len(k.ranks)
}

func rankKinds(runs []Run) kindRanks {
	type share struct {
		kind string
		time float64 // GPU seconds
	}
	var shares []share
	at := map[string]int{} // only for look-up
	for i := range runs {
		line := runs[i].Timeline
		if line == nil {
			continue
		}
		kindOf := map[model.TaskID]string{} // only for look-up
		for j := range runs[i].Tasks {
			kindOf[runs[i].Tasks[j].ID] = runs[i].Tasks[j].Kind
		}
		for _, s := range line.Spans {
			kind := kindOf[s.Task]
			n, known := at[kind]
			if !known {
				n = len(shares)
				at[kind] = n
				shares = append(shares, share{kind: kind})
			}
			shares[n].time += s.Ended.Sub(s.Launched).Seconds()
		}
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.kind, b.kind)) })
	k := kindRanks{ranks: map[string]int{}}
	for i, s := range shares[:min(shownKinds, len(shares))] {
		k.ranks[s.kind] = i
		k.legend = append(k.legend, legendEntry{cmp.Or(clean(s.kind), "tasks"), fmt.Sprintf("k%d", i)})
	}
	if more := len(shares) - shownKinds; more > 0 {
		k.legend = append(k.legend, legendEntry{fmt.Sprintf("%d more kinds", more), "rest"})
	}
	return k
}
