package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// aim is the largest allowed value of a measure of policy carma, in the table's unit.
type aim struct {
	what, flags, metric string
	most                float64
}

var aimed = []aim{
	{"nothing known", nothing, "makespan", 0.73}, {"", nothing, "mean JCT", 0.40}, {"", nothing, "p95 JCT", 0.50}, {"", nothing, "above 1.6", 3}, {"", nothing, "GPU time lost", 0.5},
	{"nothing known, memory grows late", nothing + growing, "makespan", 0.74}, {"", nothing + growing, "mean JCT", 0.42}, {"", nothing + growing, "GPU time lost", 1.5},
	{"only memory known", "--know memory --no-repeats", "makespan", 0.70}, {"", "--know memory --no-repeats", "mean JCT", 0.37}, {"", "--know memory --no-repeats", "above 1.6", 3},
	{"all known", "", "to bound", 1.10}, {"", "", "mean JCT", 0.31}, {"", "", "p95 JCT", 0.45}, {"", "", "above 1.6", 0},
	{"all known, perturbed", "--truth perturbed", "above 1.6", 4},
	{"nothing known, perturbed", nothing + " --truth perturbed", "above 1.6", 4},
	{"all known, no MPS", turns, "mean JCT", 0.48}, {"", turns, "above 1.6", 1},
}

const growing = " --truth growth=0.3"

// aims compares policy carma with its aims.
func (l *lab) aims() (string, error) {
	var out strings.Builder
	out.WriteString("| what is known, and the world | measure | aim, at most | reached | |\n|---|---|---|---|---|\n")
	measured := map[string]metrics{}
	for _, a := range aimed {
		if measured[a.flags] == nil {
			all, err := l.replay(table{}, row{flags: a.flags}, []string{"carma"})
			if err != nil {
				return "", err
			}
			measured[a.flags] = all["carma"]
		}
		for _, c := range columns {
			if c.title != a.metric {
				continue
			}
			value, verdict := c.times*measured[a.flags][c.metric], "yes"
			if value > a.most {
				verdict = "**no**"
			}
			unit := strings.TrimPrefix(fmt.Sprintf(c.format, 0.0), strings.Fields(fmt.Sprintf(c.format, 0.0))[0])
			fmt.Fprintf(&out, "| %s | %s | %g%s | %s | %s |\n", a.what, a.metric, a.most, unit, fmt.Sprintf(c.format, value), verdict)
		}
	}
	return out.String(), nil
}

// study returns the output of TestStudy.
func (l *lab) study() (string, error) {
	cmd := exec.Command("go", "test", "-count=1", "./mapper/sim/study", "-run", "^TestStudy$", "-v")
	cmd.Env = append(os.Environ(), "STUDY=1")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("    STUDY=1 go test ./mapper/sim/study -run TestStudy -v\n\n```\n")
	for line := range strings.Lines(string(text)) {
		if _, said, ok := strings.Cut(line, "study_test.go:"); ok {
			_, said, _ = strings.Cut(said, ": ")
			out.WriteString(said)
		}
	}
	out.WriteString("```\n")
	return out.String(), nil
}

// shortTable has few columns and no commands, as in docs/results.md.
func (l *lab) shortTable(t table) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s | %s |\n%s|\n", t.first, strings.Join(t.short, " | "), strings.Repeat("|---", len(t.short)+1))
	for _, r := range t.rows {
		all, err := l.replay(t, r, []string{r.policy})
		if err != nil {
			return "", err
		}
		cells := []string{r.what}
		for _, title := range t.short {
			for _, c := range columns {
				if c.title == title {
					format := strings.NewReplacer("%.3f", "%.2f", "%.2f %%", "%.1f %%").Replace(c.format)
					cells = append(cells, fmt.Sprintf(format, c.times*all[strings.ToLower(r.policy)][c.metric]))
				}
			}
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
	}
	return out.String(), nil
}
