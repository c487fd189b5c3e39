package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/internal/lazyregexp"
)

// shown formats a value with the precision at which bounds are shown, stored and
// compared.
func shown(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// stored reads was: the values of a bound when last recorded, one for each of its traces.
func (b *Bounds) stored(v *yaml.Node) ([]float64, error) {
	list := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		list = v.Content
	}
	var out []float64
	for _, n := range list {
		f, err := b.number(n)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Moved returns the values that differ from their recorded values, and the number of
// recorded values.
func (b *Bounds) Moved(all []Replayed, rows []Row) (moved []Finding, kept int) {
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].Label
		for i, was := range one.was {
			kept++
			now := one.value(one.traces[i], label, all)
			if shown(now) == shown(was) {
				continue
			}
			change := ""
			if was != 0 {
				change = fmt.Sprintf(" (%+.1f %%)", 100*(now-was)/was)
			}
			moved = append(moved, Finding{one.line, one.traces[i], label, fmt.Sprintf("%s was %s, is %s%s", one.metric, shown(was), shown(now), change)})
		}
	}
	return moved, kept
}

var keptValue = lazyregexp.New(`,\s*was:\s*(\[[^\]]*\]|[^,}\]]*)`)

// Record returns the text of the file with the section's present values; nothing else in
// it changes.
func (b *Bounds) Record(text string, all []Replayed, rows []Row) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].Label
		values := make([]string, len(one.traces))
		for i, t := range one.traces {
			values[i] = shown(one.value(t, label, all))
		}
		was := values[0]
		if len(values) > 1 {
			was = "[" + strings.Join(values, ", ") + "]"
		}
		line := keptValue().ReplaceAllLiteralString(lines[one.line-1], "")
		end := strings.LastIndexByte(line, '}')
		if end < 0 || !strings.Contains(line, "{") {
			return "", wrongf("", "%v", b.errorf(one.line, "--record: a bound must stand on one line in braces; write for example - {trace: geomean, policy: magm, metric: ooms, max: 0}"))
		}
		lines[one.line-1] = line[:end] + ", was: " + was + line[end:]
	}
	return strings.Join(lines, ""), nil
}
