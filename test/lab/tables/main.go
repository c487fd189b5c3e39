// Tables measures the tables of docs/results.md and test/lab/studies.md with the very commands
// that the pages show, and writes them there. Without documents it prints them.
//
//	bin/lab/tables -carma bin/carma docs/results.md test/lab/studies.md
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var l lab
	flag.StringVar(&l.carma, "carma", "bin/carma", "the program")
	only := flag.String("only", "", "names of tables, separated by commas (default: all)")
	flag.IntVar(&l.from, "from", 12001, "first seed of the generated traces")
	flag.IntVar(&l.count, "count", 30, "number of generated traces")
	flag.Parse()
	if err := l.run(flag.Args(), *only); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

// lab runs the program.
type lab struct {
	carma       string
	from, count int
	folder      string // of traces that are made
}

func (l *lab) run(docs []string, only string) error {
	var err error
	if l.carma, err = filepath.Abs(l.carma); err != nil {
		return err
	}
	if l.folder, err = os.MkdirTemp("", "tables"); err != nil {
		return err
	}
	defer os.RemoveAll(l.folder)
	parts := []part{{"aims", l.aims}, {"study", l.study}}
	for _, t := range tables {
		parts = append(parts, part{t.name, func() (string, error) { return l.measure(t) }})
	}
	for _, p := range parts {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, p.name)
		made, err := p.make()
		if err != nil {
			return fmt.Errorf("table %s: %w", p.name, err)
		}
		if len(docs) == 0 {
			fmt.Printf("%s\n%s\n", p.name, made)
		} else if err := insert(docs, p.name, made); err != nil {
			return err
		}
	}
	return nil
}

// part is one place of the documents.
type part struct {
	name string
	make func() (string, error)
}

// insert puts a part between its two lines of one of the documents.
func insert(docs []string, name, made string) error {
	begin, end := fmt.Sprintf("<!-- table %s: written by make replay-tables -->\n", name), "<!-- end of table -->\n"
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			return err
		}
		before, rest, ok := bytes.Cut(text, []byte(begin))
		_, after, closed := bytes.Cut(rest, []byte(end))
		if ok && closed {
			return os.WriteFile(doc, slices.Concat(before, []byte(begin+made+end), after), 0o644)
		}
	}
	return fmt.Errorf("no document has the lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
}

// measure returns the commands and the table. Policies under the same flags are
// replayed together.
func (l *lab) measure(t table) (string, error) {
	var out strings.Builder
	if t.short != nil {
		return l.shortTable(t)
	}
	for _, line := range l.commands(t) {
		fmt.Fprintf(&out, "    %s\n", line)
	}
	made := slices.ContainsFunc(t.rows, func(r row) bool { return r.made != "" })
	titles := []string{t.first, "POLICY", "FLAGS"}
	if made {
		titles = slices.Insert(titles, 1, "TRACES")
	}
	columns := columns
	if t.own != nil {
		columns = t.own
	}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	fmt.Fprintf(&out, "\n| %s |\n%s|\n", strings.Join(titles, " | "), strings.Repeat("|---", len(titles)))
	measured := map[string]map[string]metrics{} // by traces and flags, then policy
	for _, r := range t.rows {
		key := r.made + " " + r.flags
		if measured[key] == nil {
			var policies []string
			for _, o := range t.rows {
				if o.made == r.made && o.flags == r.flags && !slices.Contains(policies, o.policy) {
					policies = append(policies, o.policy)
				}
			}
			var err error
			if measured[key], err = l.replay(t, r, policies); err != nil {
				return "", err
			}
		}
		m, ok := measured[key][strings.ToLower(r.policy)]
		if !ok {
			return "", fmt.Errorf("no row %s under %q", r.policy, r.flags)
		}
		cells := []string{r.what, code(r.policy), code(r.flags)}
		if made {
			cells = slices.Insert(cells, 1, code(r.made))
		}
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf(c.format, c.times*m[c.metric]))
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
	}
	return out.String(), nil
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// metrics are the figures of one row over all traces, by name.
type metrics map[string]float64

// column is a metric in a table.
type column struct {
	title, metric, format string
	times                 float64
}

// urgentColumns are about urgent tasks and the tasks that are preempted for them.
var urgentColumns = []column{
	{"urgent wait", "urgent_waiting_mean_min", "%.2f min", 1}, {"p95", "urgent_waiting_p95_min", "%.2f min", 1}, {"p95 on 1 GPU", "urgent_1gpu_waiting_p95_s", "%.1f s", 1},
	{"others' JCT", "others_jct_mean_min", "%.1f min", 1}, {"makespan", "makespan_ratio", "%.3f", 1}, {"worst", "slowdown_max", "%.2f", 1}, {"stretched p99", "stretched_p99", "%.2f", 1},
	{"suspensions", "suspends", "%.0f", 1}, {"p95 away", "away_p95_min", "%.1f min", 1}, {"longest", "away_max_min", "%.1f min", 1}, {"copies", "copies_s", "%.0f s", 1}, {"OOMs", "ooms", "%.0f", 1},
}

// columns of every other table.
var columns = []column{
	{"makespan", "makespan_ratio", "%.3f", 1}, {"mean JCT", "jct_mean_ratio", "%.3f", 1}, {"p95 JCT", "jct_p95_ratio", "%.3f", 1},
	{"above 1.6", "above_cap", "%.1f %%", 100}, {"worst", "slowdown_max", "%.2f", 1}, {"OOMs", "ooms", "%.0f", 1},
	{"GPU time lost", "lost_share", "%.2f %%", 100}, {"energy", "energy_ratio", "%.3f", 1}, {"to bound", "makespan_to_bound", "%.3f", 1},
}

// replay runs the program and returns the metrics by policy, in small letters.
func (l *lab) replay(t table, r row, policies []string) (map[string]metrics, error) {
	traces, err := l.traces(t, r)
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{"replay"}, traces, []string{"--json", "--policy", strings.Join(policies, ",")}, strings.Fields(r.flags))
	out, err := l.output(args)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Overall []struct {
			Policy, Estimator string
			Metrics           metrics
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, err
	}
	all := map[string]metrics{}
	for _, o := range answer.Overall {
		all[strings.ToLower(o.Policy)] = o.Metrics
	}
	return all, nil
}

// output returns the program's output. It may exit with 1, because of tasks that failed
// under a preset.
func (l *lab) output(args []string) ([]byte, error) {
	cmd := exec.Command(l.carma, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return out, nil
	}
	return out, err
}
