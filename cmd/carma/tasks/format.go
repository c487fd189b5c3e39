package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"carma/cmd/carma/cli"
	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/runner/api"
)

// format is the output format of ps, from --format.
type format struct {
	table   bool // with titles and aligned
	lines   bool // one JSON object per line
	columns []column
	form    *template.Template
	titles  []string // titles of a template in a table
}

// parseFormat reads the value of --format:
//
//	ID,NAME or table ID,NAME     columns; with table, their titles too
//	{{.ID}} {{.Name}}            a template per task; \t and \n are a tab and a line's end
//	table {{.ID}}\t{{.Name}}     the same, aligned, with titles
//	json                         a JSON object per line
func parseFormat(text string) (*format, error) {
	f := &format{}
	rest := text
	if text == "table" || strings.HasPrefix(text, "table ") {
		f.table, rest = true, strings.TrimSpace(strings.TrimPrefix(text, "table"))
	}
	switch {
	case text == "json":
		f.lines = true
		return f, nil
	case strings.Contains(rest, "{{"):
		return f, f.template(rest)
	case rest == "":
		return nil, cli.Usagef("write for example 'table ID,NAME,COMMAND' or '{{.ID}} {{.Name}}'", "--format %q names nothing", text)
	}
	for title := range strings.SplitSeq(rest, ",") {
		c, err := columnNamed(strings.TrimSpace(title))
		if err != nil {
			return nil, cli.Usagef("", "--format: %v", err)
		}
		f.columns = append(f.columns, c)
	}
	return f, nil
}

var fieldInTemplate = lazyregexp.New(`\{\{[^}]*?\.(\w+)[^}]*\}\}`)

func (f *format) template(text string) (err error) {
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text)
	f.form, err = template.New("format").Funcs(template.FuncMap{
		"json": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"join": strings.Join, "lower": strings.ToLower, "upper": strings.ToUpper,
	}).Parse(text)
	if err == nil {
		err = f.form.Execute(io.Discard, newFields(&api.Task{}, time.Time{})) // detects unknown fields
	}
	if err == nil {
		for _, part := range strings.Split(text, "\t") {
			f.titles = append(f.titles, fieldInTemplate().ReplaceAllStringFunc(part, func(s string) string {
				return strings.ToUpper(fieldInTemplate().FindStringSubmatch(s)[1])
			}))
		}
		return nil
	}
	if m := noField().FindStringSubmatch(err.Error()); m != nil {
		return cli.Usagef("did you mean ."+suggest.Names(m[2], fieldNames, 1)[0]+"? carma inspect shows more", "--format: tasks have no field %s", cmp.Or(m[1], "."+m[2]))
	}
	return cli.Usagef("write for example '{{.ID}} {{.Name}}'", "--format: %s", strings.TrimPrefix(err.Error(), "template: "))
}

// noField finds, in a template's error, the whole expression (.State.Pid) and the unknown
// name.
var noField = lazyregexp.New(`(?:<(\.[\w.]+)>: )?can't evaluate field (\w+)`)

// print prints the tasks.
func (f *format) print(a *cli.App, rows []row, now time.Time, width int) error {
	switch {
	case f.lines:
		e := json.NewEncoder(a.Out)
		e.SetEscapeHTML(false)
		for _, r := range rows {
			if err := e.Encode(r.Task); err != nil {
				return err
			}
		}
		return nil
	case f.form != nil:
		return f.fill(a, rows, now, width)
	case f.table:
		return table(f.columns, rows, now).Write(a.Out, width)
	}
	for i := range rows {
		cells := make([]string, len(f.columns))
		for j, c := range f.columns {
			cells[j] = cli.Printable(c.cell(&rows[i], now))
		}
		a.Println(strings.Join(cells, "\t"))
	}
	return nil
}

// fill prints the template for each task.
func (f *format) fill(a *cli.App, rows []row, now time.Time, width int) error {
	t := &cli.Table{}
	for _, title := range f.titles {
		t.Columns = append(t.Columns, cli.Column{Title: title, Least: 8, Share: 1})
	}
	for i := range rows {
		var line strings.Builder
		if err := f.form.Execute(&line, newFields(rows[i].Task, now)); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
		if !f.table {
			a.Println(line.String())
			continue
		}
		cells := strings.Split(line.String(), "\t")
		for len(cells) < len(t.Columns) {
			cells = append(cells, "")
		}
		t.Add(cells[:len(t.Columns)]...)
	}
	if f.table {
		return t.Write(a.Out, width)
	}
	return nil
}

// fields contains a template's fields of a task: all fields of carma inspect, the cells
// of ps, and docker's names.
type fields struct {
	*api.Task
	GPU, Mem, Time, Prio, Command, Start, End, Code, Progress, Slow, Energy, Away, Host, Labels, Why string
	// docker's
	Names, Status, State, CreatedAt, RunningFor string
}

// fieldNames lists the candidates for a mistyped name.
var fieldNames = []string{
	"ID", "Name", "User", "Group", "Image", "Submit", "Phase", "Priority", "Position", "Submitted", "Started", "Ended", "Attempts", "ExitCode", "Reason",
	"GPU", "Mem", "Time", "Prio", "Command", "Start", "End", "Code", "Progress", "Slow", "Energy", "Away", "Host", "Suspension", "Labels", "Why", "Names", "Status", "State", "CreatedAt", "RunningFor",
}

func newFields(t *api.Task, now time.Time) fields {
	age := cli.Age(TimeOf(t, now))
	return fields{
		Task: t, GPU: Where(t), Mem: Need(t), Time: age, Prio: t.Priority, Command: command(t), Start: clock(t.Started), End: clock(t.Ended), Code: code(t),
		Progress: Far(t, now), Slow: Slowed(t), Energy: spent(t), Away: away(t), Host: inHost(t), Labels: labelled(t), Why: Hint(t),
		Names: t.Name, Status: strings.TrimSpace(t.Phase + " " + age), State: t.Phase, CreatedAt: clock(t.Submitted), RunningFor: cli.Age(now.Sub(t.Submitted)),
	}
}
