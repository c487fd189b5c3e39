package pick

import (
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/internal/lazyregexp"
)

// mostGPUs is the largest number of GPUs in a range.
const mostGPUs = 1024

var gpuRange = lazyregexp.New(`^([0-9]{1,6})-([0-9]{1,6})$`)

// GPUs parses words that name GPUs: an index or a UUID, several separated by commas
// (0,2), a range of indexes (0-3). The daemon checks that the GPUs exist.
func GPUs(words []string) ([]string, error) {
	var all []string
	for _, word := range words {
		for name := range strings.SplitSeq(word, ",") {
			name = strings.TrimSpace(name)
			if name == "" {
				return nil, cli.Usagef("write for example 0,2 or 0-3", "%q names an empty GPU", word)
			}
			m := gpuRange().FindStringSubmatch(name)
			if m == nil {
				all = append(all, name)
				continue
			}
			from, _ := strconv.Atoi(m[1])
			to, _ := strconv.Atoi(m[2])
			switch {
			case from > to:
				return nil, cli.Usagef("write "+m[2]+"-"+m[1], "GPUs %s run backwards", name)
			case to-from >= mostGPUs:
				return nil, cli.Usagef("carma gpus lists them", "GPUs %s are more than %d", name, mostGPUs)
			}
			for i := from; i <= to; i++ {
				all = append(all, strconv.Itoa(i))
			}
		}
	}
	return all, nil
}
