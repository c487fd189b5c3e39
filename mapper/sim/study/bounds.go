package study

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

// Bounds contains the bounds on the results of a replay, with the replay's conditions:
// one section of a file, which is one YAML document.
type Bounds struct {
	File   string
	line   int      // line of the section
	traces []string // traces of the section, then of its bounds
	lines  []int    // line that names each trace
	// Count is the number of GPUs, or 0 if not given.
	Count int
	// Conditions are the conditions of the section.
	Conditions Conditions
	list       []bound
}

// bound is one line of a section.
type bound struct {
	line              int
	traces            []string // or overTraces for all traces
	policy            string
	estimator         string // or empty for a preset's own, otherwise the default
	metric            string
	most, least       float64
	hasMost, hasLeast bool
	was               []float64 // its values when last recorded, by trace, or empty
}

// overTraces is the trace's name in a bound on values over all traces.
const overTraces = "geomean"

// boundsSchema is the first key of the file.
const boundsSchema = "carma/bounds/v1"

var (
	boundsKeys = []string{"schema", "traces", "gpu-count", "know", "repeats", "truth", "sharing", "coarse", "suspend", "urgent", "bounds"}
	boundKeys  = []string{"trace", "traces", "policy", "estimator", "metric", "max", "min", "was"}
)

// ReadBounds reads a file of bounds, its sections in order. Errors name file and line.
func ReadBounds(path string) ([]*Bounds, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, wrongf("", "--check: %s: cannot be read: %v", path, errors.Unwrap(err))
	}
	sections, err := parseBounds(path, data)
	if err != nil {
		return nil, wrongf("", "%v", err)
	}
	return sections, nil
}

func parseBounds(path string, data []byte) ([]*Bounds, error) {
	var sections []*Bounds
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		b := &Bounds{File: path, line: 1, Conditions: Conditions{Know: KnowAll}}
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF) && len(sections) > 0:
			return sections, nil
		case errors.Is(err, io.EOF):
			return nil, b.errorf(1, "no bounds; the first line is schema: %s", boundsSchema)
		case err == nil && len(doc.Content) == 0:
			return nil, b.errorf(doc.Line, "an empty section; the first line is schema: %s", boundsSchema)
		case err != nil:
			what, line := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "), 1
			if n, _ := fmt.Sscanf(what, "line %d:", &line); n == 1 {
				_, what, _ = strings.Cut(what, ": ")
			}
			return nil, b.errorf(line, "%s", what)
		}
		if err := b.section(doc.Content[0]); err != nil {
			return nil, err
		}
		sections = append(sections, b)
	}
}

// section reads one document.
func (b *Bounds) section(n *yaml.Node) error {
	b.line = n.Line
	schema := ""
	err := b.fields(n, boundsKeys, func(key string, v *yaml.Node) (err error) {
		switch key {
		case "schema":
			schema = v.Value
		case "traces":
			b.traces, err = b.names(v)
			b.lines = slices.Repeat([]int{v.Line}, len(b.traces))
		case "gpu-count":
			if b.Count, err = strconv.Atoi(v.Value); err != nil || b.Count < 1 {
				err = b.errorf(v.Line, "gpu-count: %q is not a whole number from 1 on", v.Value)
			}
		case "bounds":
			err = b.bounds(v)
		default:
			err = b.wrap(v.Line, b.Conditions.Set(key, v.Value))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case schema != boundsSchema:
		return b.errorf(b.line, "schema is %q; this carma reads %s", schema, boundsSchema)
	case len(b.list) == 0:
		return b.errorf(b.line, "no bounds; write for example - {trace: philly-t1-60, policy: magm, metric: makespan_ratio, max: 0.7}")
	}
	for _, one := range b.list {
		for _, t := range one.traces {
			if t != overTraces && !slices.Contains(b.traces, t) {
				b.traces, b.lines = append(b.traces, t), append(b.lines, one.line)
			}
		}
	}
	return nil
}

func (b *Bounds) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", b.File, line, fmt.Sprintf(format, args...))
}

// fields calls set for each key of a YAML map, which must be one of keys.
func (b *Bounds) fields(n *yaml.Node, keys []string, set func(string, *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return b.errorf(n.Line, "a map of %s belongs here", strings.Join(keys, ", "))
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(keys, key.Value):
			return b.errorf(key.Line, "unknown key %q; nearest: %s", key.Value, suggest.Names(key.Value, keys, 1)[0])
		case slices.Contains(seen, key.Value):
			return b.errorf(key.Line, "%s is set twice", key.Value)
		}
		seen = append(seen, key.Value)
		if err := set(key.Value, v); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bounds) names(n *yaml.Node) ([]string, error) {
	var names []string
	if err := n.Decode(&names); err != nil {
		return nil, b.errorf(n.Line, "a list of traces belongs here, for example [philly-t1-60, philly-t2-60]")
	}
	return names, nil
}

func (b *Bounds) bounds(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return b.errorf(n.Line, "bounds: a list belongs here")
	}
	for _, item := range n.Content {
		one := bound{line: item.Line}
		err := b.fields(item, boundKeys, func(key string, v *yaml.Node) (err error) {
			switch key {
			case "trace":
				one.traces = append(one.traces, v.Value)
			case "traces":
				one.traces, err = b.names(v)
			case "policy":
				one.policy, err = v.Value, b.wrap(v.Line, (Rules{Policies: v.Value, Estimator: Estimators[0]}).check())
			case "estimator":
				one.estimator, err = v.Value, b.wrap(v.Line, oneOf("estimator", v.Value, Estimators))
			case "metric":
				one.metric, err = v.Value, b.wrap(v.Line, oneOf("metric", v.Value, MetricNames()))
			case "max":
				one.most, err = b.number(v)
				one.hasMost = true
			case "min":
				one.least, err = b.number(v)
				one.hasLeast = true
			case "was":
				one.was, err = b.stored(v)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case len(one.traces) == 0 || one.policy == "" || one.metric == "" || !one.hasMost && !one.hasLeast:
			return b.errorf(one.line, "a bound has trace, policy, metric, and max or min")
		case len(one.was) > 0 && len(one.was) != len(one.traces):
			return b.errorf(one.line, "was has %d values for %d traces", len(one.was), len(one.traces))
		}
		b.list = append(b.list, one)
	}
	return nil
}

func (b *Bounds) number(v *yaml.Node) (float64, error) {
	f, err := strconv.ParseFloat(v.Value, 64)
	if err != nil || f != f {
		return 0, b.errorf(v.Line, "%q is not a number", v.Value)
	}
	return f, nil
}

// wrap adds file and line to an error.
func (b *Bounds) wrap(line int, err error) error {
	if err == nil {
		return nil
	}
	return b.errorf(line, "%s", strings.TrimPrefix(err.Error(), "--policy: "))
}
