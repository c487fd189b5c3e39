package words

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carma/mapper/model"
)

// GPUs names GPUs by their indexes, in order, or by their UUIDs if index returns a negative
// number.
func GPUs(ids []model.GPUID, index func(model.GPUID) int) string {
	type named struct {
		index int
		id    model.GPUID
	}
	var list []named
	for _, id := range ids {
		list = append(list, named{index(id), id})
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.index, b.index) })
	var parts []string
	for _, g := range list {
		if g.index < 0 {
			parts = append(parts, string(g.id))
			continue
		}
		parts = append(parts, fmt.Sprint(g.index))
	}
	if len(parts) == 1 {
		return "GPU " + parts[0]
	}
	return "GPUs " + strings.Join(parts, ", ")
}

// Grants describes grants, each as GPU-1234=12.0 GiB.
func Grants(grants []model.Grant) []string {
	words := make([]string, len(grants))
	for i, g := range grants {
		words[i] = fmt.Sprintf("%s=%s", g.GPU, g.Memory)
	}
	return words
}
