package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// shown is how precisely values of bounds are told, kept and compared.
func shown(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// stored reads was: what a bound's value came to when it was last kept, one for
// each of its traces.
func (b *bounds) stored(v *yaml.Node) ([]float64, error) {
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

// moved prints the values that are not what they were when they were kept.
func (b *bounds) moved(w io.Writer, all []replayedTrace, rows []replayRow) {
	kept, moved := 0, 0
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].label
		for i, was := range one.was {
			kept++
			now := one.value(one.traces[i], label, all)
			if shown(now) == shown(was) {
				continue
			}
			moved++
			change := ""
			if was != 0 {
				change = fmt.Sprintf(" (%+.1f %%)", 100*(now-was)/was)
			}
			fmt.Fprintf(w, "%s:%d: moved: %s, %s: %s was %s, is %s%s\n", b.file, one.line, printable(one.traces[i]), label, one.metric, shown(was), shown(now), change)
		}
	}
	if kept > 0 {
		fmt.Fprintf(w, "%s: %d of %d kept values moved\n", b.file, moved, kept)
	}
}

var keptValue = regexp.MustCompile(`,\s*was:\s*(\[[^\]]*\]|[^,}\]]*)`)

// record keeps what the values came to in the file of bounds, of which nothing
// else changes.
func (b *bounds) record(all []replayedTrace, rows []replayRow) error {
	text, err := os.ReadFile(b.file)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].label
		values := make([]string, len(one.traces))
		for i, t := range one.traces {
			values[i] = shown(one.value(t, label, all))
		}
		was := values[0]
		if len(values) > 1 {
			was = "[" + strings.Join(values, ", ") + "]"
		}
		line := keptValue.ReplaceAllLiteralString(lines[one.line-1], "")
		end := strings.LastIndexByte(line, '}')
		if end < 0 || !strings.Contains(line, "{") {
			return usagef("", "%v", b.errorf(one.line, "--record: a bound must stand on one line in braces; write for example - {trace: geomean, policy: magm, metric: ooms, max: 0}"))
		}
		lines[one.line-1] = line[:end] + ", was: " + was + line[end:]
	}
	return replaceFile(b.file, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, ""))
		return err
	})
}
