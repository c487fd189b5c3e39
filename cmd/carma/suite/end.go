package suite

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/tasks"
	"carma/mapper/model"
	"carma/runner/api"
)

// endReport configures the report about the end of a suite.
type endReport struct {
	json         bool
	junit, color string
}

func (r *endReport) flags(f *pflag.FlagSet) {
	f.BoolVar(&r.json, "json", false, "print the result as JSON, and the output of the tasks on standard error")
	f.StringVar(&r.junit, "junit", "", "write the result to a `file` as JUnit XML")
	r.colorFlag(f)
}

func (r *endReport) colorFlag(f *pflag.FlagSet) {
	cli.ChoiceFlag(f, &r.color, []string{"auto", "always", "never"}, "color", "color the tasks' names: auto (on a terminal), always or never")
}

// colors lists the terminal colors that are readable on light and dark backgrounds.
var colors = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// painter assigns a color to the tasks of each service. It returns nil for no colors.
func (r *endReport) painter(to io.Writer, tasks []api.Submit) func(int, string) string {
	if r.color == "never" || r.color != "always" && (!cli.IsTerminal(to) || os.Getenv("NO_COLOR") != "") {
		return nil
	}
	var parts []string
	of := make([]int, len(tasks))
	for i := range tasks {
		of[i] = slices.Index(parts, tasks[i].Part)
		if of[i] < 0 {
			of[i] = len(parts)
			parts = append(parts, tasks[i].Part)
		}
	}
	return func(i int, name string) string {
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colors[of[i]%len(colors)], name)
	}
}

// result is the output of suite up and suite wait with --json.
type result struct {
	Suite string     `json:"suite"`
	OK    bool       `json:"ok"`
	Tasks []api.Task `json:"tasks"`
}

// ended reports the ends of a suite's tasks and returns the error with which to exit: 1
// if one did not succeed.
func ended(ctx context.Context, a *cli.App, client *api.Client, r *endReport, name string, tasks []api.Task) error {
	result := result{Suite: name, OK: true, Tasks: tasks}
	succeeded := 0
	for i := range tasks {
		if tasks[i].Phase == string(model.Succeeded) {
			succeeded++
		}
	}
	result.OK = succeeded == len(tasks)
	if r.junit != "" {
		if err := writeJUnit(ctx, client, r.junit, name, tasks); err != nil {
			return cli.Usagef("", "--junit %s: %v", r.junit, cli.Reason(err))
		}
	}
	if r.json {
		if err := a.JSON(result); err != nil {
			return err
		}
	} else if err := a.Print(endTable(tasks)); err != nil {
		return err
	}
	if result.OK {
		return nil
	}
	a.Say("suite %s: %d of %d tasks succeeded", name, succeeded, len(tasks))
	return cli.CodeError(cli.ExitFailed)
}

// endTable lists the ends of finished tasks.
func endTable(list []api.Task) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "TASK", Least: 8, Share: 2}, {Title: "END"}, {Title: "CODE", Right: true}, {Title: "RUNS", Right: true}, {Title: "GPU", Least: 3, Share: 1},
		{Title: "WAITED", Right: true}, {Title: "RAN", Right: true}, {Title: "PEAK", Right: true}, {Title: "WHY", Least: 16, Share: 3},
	}}
	for i := range list {
		task := &list[i]
		code, waited, ran, peak := "-", task.Ended.Sub(task.Submitted), time.Duration(0), int64(0)
		if task.ExitCode != nil {
			code = strconv.Itoa(*task.ExitCode)
		}
		if at := cli.LastAttempt(task); at != nil && !at.Started.IsZero() {
			ran = task.Ended.Sub(at.Started) - at.Suspended
			waited = at.Started.Sub(task.Submitted)
		}
		for _, at := range task.Attempts {
			peak = max(peak, at.Peak)
		}
		most := "-"
		if peak > 0 {
			most = cli.GiB(peak)
		}
		t.Add(task.Name, task.Phase, code, strconv.Itoa(len(task.Attempts)), tasks.Where(task), cli.Age(waited), cli.Age(ran), most, tasks.Hint(task))
	}
	return t
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr,omitempty"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// junitTail is the number of last lines of a failed task's output in a report.
const junitTail = 40

// writeJUnit writes a suite's result for CI. A task is a test case. A failed task
// contains the end of its output. A task that never ran or was stopped counts as skipped.
func writeJUnit(ctx context.Context, client *api.Client, path, name string, tasks []api.Task) error {
	s := junitSuite{Name: name, Tests: len(tasks)}
	var first, end time.Time
	for i := range tasks {
		t := &tasks[i]
		if first.IsZero() || t.Submitted.Before(first) {
			first = t.Submitted
		}
		if t.Ended.After(end) {
			end = t.Ended
		}
		c := junitCase{Name: xmlText(t.Name), Class: xmlText(name + "." + t.Submit.Part), Time: seconds(0)}
		if at := cli.LastAttempt(t); at != nil && !at.Started.IsZero() {
			c.Time = seconds(t.Ended.Sub(at.Started) - at.Suspended)
		}
		switch t.Phase {
		case string(model.Succeeded):
		case string(model.Cancelled):
			s.Skipped++
			c.Skipped = &junitSkipped{Message: xmlText(t.Reason)}
		default:
			s.Failures++
			c.Failure = &junitFailure{Message: xmlText(cli.Ending(t)), Text: tailOf(ctx, client, t)}
			if at := cli.LastAttempt(t); at != nil {
				c.Failure.Type = at.Outcome
			}
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time = seconds(end.Sub(first))
	if !first.IsZero() {
		s.Stamp = first.UTC().Format("2006-01-02T15:04:05")
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(cli.ExpandHome(path), append(append([]byte(xml.Header), text...), '\n'), 0o644)
}

// tailOf returns the end of a task's output. A read error becomes part of the text.
func tailOf(ctx context.Context, client *api.Client, t *api.Task) string {
	var b strings.Builder
	_, err := client.Logs(ctx, strconv.FormatInt(t.ID, 10), api.LogOptions{Tail: junitTail}, func(l api.LogLine) error {
		b.WriteString(xmlText(l.Line))
		if !l.Partial {
			b.WriteByte('\n')
		}
		return nil
	})
	if err != nil {
		fmt.Fprintf(&b, "carma: the output cannot be read: %s\n", cli.Describe(err))
	}
	return b.String()
}

// xmlText removes the characters that XML cannot represent.
func xmlText(s string) string { return cli.Printable(s) }

func seconds(d time.Duration) string { return strconv.FormatFloat(max(0, d.Seconds()), 'f', 3, 64) }
