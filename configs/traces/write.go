package traces

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"carma/configs/traces/joblog"
	"carma/configs/workloads"
	"carma/internal/lazyregexp"
)

// Write writes a trace in YAML. Parse reads it back as an equal trace, except for the
// line numbers.
func Write(w io.Writer, t Trace) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "schema: %s\n", schema)
	for _, pair := range [][2]string{{"name", t.Name}, {"description", t.Description}, {"source", t.Source}, {"campaign", t.Campaign}} {
		if pair[1] != "" {
			fmt.Fprintf(b, "%s: %s\n", pair[0], scalar(pair[1]))
		}
	}
	b.WriteString("tasks:\n")
	for _, task := range t.Tasks {
		fmt.Fprintf(b, "  - {%s}\n", strings.Join(task.values(), ", "))
	}
	return b.Flush()
}

// values returns a task's values that differ from the defaults, as "key: value".
func (t Task) values() []string {
	list := []string{"at: " + seconds(t), "workload: " + scalar(t.Workload)}
	if w, err := workloads.Find(t.Workload); err != nil || w.GPUs != t.GPUs {
		list = append(list, "gpus: "+strconv.Itoa(t.GPUs))
	}
	if t.Name != "" {
		list = append(list, "name: "+scalar(t.Name))
	}
	if t.User != "" {
		list = append(list, "user: "+scalar(t.User))
	}
	if t.Priority != "" && t.Priority != normal {
		list = append(list, "priority: "+t.Priority)
	}
	if t.Mem > 0 {
		list = append(list, "mem: "+strconv.FormatInt(int64(t.Mem), 10))
	}
	return list
}

// seconds formats an arrival. A fraction gets a unit, because plain numbers are rounded
// to microseconds when read.
func seconds(t Task) string {
	s := joblog.FormatSeconds(t.At)
	if strings.Contains(s, ".") {
		s += "s"
	}
	return s
}

var (
	simple = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
	words  = lazyregexp.New(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

// scalar formats a text for YAML. It quotes a text that YAML could read as something
// else; Go's escapes are valid there.
func scalar(s string) string {
	if simple().MatchString(s) && !words().MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
