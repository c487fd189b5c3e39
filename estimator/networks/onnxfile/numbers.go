package onnxfile

import (
	"fmt"

	"carma/configs/models"
)

// fault is an error without the file's name, which [Import] adds.
func fault(format string, args ...any) error {
	return &models.Error{What: fmt.Sprintf(format, args...)}
}

// short quotes a word of the file for a message.
func short(word string) string {
	if len(word) > 60 {
		word = word[:28] + "..." + word[len(word)-28:]
	}
	return fmt.Sprintf("%q", word)
}

// maxRank is the most dimensions of a tensor in the graph.
const maxRank = 16

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d == 0 {
			return 0
		}
		n = models.Times(n, d)
	}
	return n
}

// shapeFault names a fault of a shape; empty: none. A dimension may be 0.
func shapeFault(shape []int64) string {
	if len(shape) > maxRank {
		return fmt.Sprintf("%d dimensions; at most %d", len(shape), maxRank)
	}
	for _, d := range shape {
		if d < 0 || d > models.MaxElements {
			return fmt.Sprintf("a dimension of %d; it is 0 to 2^50", d)
		}
	}
	if product(shape) > models.MaxElements {
		return fmt.Sprintf("%v has more than 2^50 elements", shape)
	}
	return ""
}

// clamp bounds a number of the file so that sums do not overflow.
func clamp(n int64) int64 { return min(max(n, -models.MaxElements), models.MaxElements) }
