package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
)

// policiesPage is the page of docs that shows policies, policiesTrace the trace of its
// examples.
const (
	policiesPage  = "../../../docs/results.md"
	policiesTrace = "../../../docs/policies/trace.yaml"
)

// pictured lists the replays of the page, by the name of their table.
var pictured = []struct {
	name  string
	shown []string // policies with a picture
	flags []string
}{
	{"policies", []string{"exclusive", "round-robin", "magm", "mug", "lucid", "carma"}, nil},
	{"unknown", []string{"OR-MAGM", "carma"}, []string{"--policy", "exclusive,OR-MAGM,carma", "--know", "nothing", "--no-repeats"}},
}

// TestPolicyPictures: this program reproduces the charts and the tables of docs/results.md.
// UPDATE_PICTURES=1 (make pictures) writes them.
func TestPolicyPictures(t *testing.T) {
	text, err := os.ReadFile(policiesPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	update := os.Getenv("UPDATE_PICTURES") != ""
	for _, p := range pictured {
		dir := t.TempDir()
		out := printed(t, append([]string{policiesTrace, "--gpu-count", "3", "--svg", filepath.Join(dir, p.name+"-{policy}.svg")}, p.flags...)...)
		for _, policy := range p.shown {
			name := p.name + "-" + policy + ".svg"
			made, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			kept := filepath.Join(filepath.Dir(policiesTrace), name)
			if update {
				if err := os.WriteFile(kept, made, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if old, err := os.ReadFile(kept); err != nil || !bytes.Equal(old, made) {
				t.Errorf("%s is not what the program draws (%v): make picture-policies", kept, err)
			}
			if !strings.Contains(page, "](policies/"+name+")") {
				t.Errorf("%s does not show %s", policiesPage, name)
			}
		}
		begin, end := fmt.Sprintf("<!-- table %s: written by make picture-policies -->\n", p.name), "<!-- end of table -->\n"
		at := strings.Index(page, begin)
		if at < 0 {
			t.Fatalf("%s has no line %q", policiesPage, begin)
		}
		at += len(begin)
		until := at + strings.Index(page[at:], end)
		want := markdown(t, out)
		if update {
			page = page[:at] + want + page[until:]
		} else if page[at:until] != want {
			t.Errorf("table %s is not what the replay says: make picture-policies\n%s", p.name, want)
		}
	}
	if update {
		if err := os.WriteFile(policiesPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// printed returns the output of carma replay.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := Command(cli.New(strings.NewReader(""), &out, &out, "test"))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}

// markdown converts the console's table to Markdown.
func markdown(t *testing.T, out string) string {
	t.Helper()
	rows := consoleRows(out)
	if len(rows) < 3 {
		t.Fatalf("no table in %q", out)
	}
	var b strings.Builder
	for i, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "%s|\n", strings.Repeat("|---", len(r)))
		}
	}
	return b.String()
}

// consoleRows returns the cells of the console's table, with the heading first.
func consoleRows(out string) (rows [][]string) {
	lines := strings.Split(out, "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "POLICY ") })
	if from < 0 {
		return nil
	}
	for _, l := range lines[from:] {
		if l == "" || strings.HasPrefix(l, " ") {
			break
		}
		rows = append(rows, strings.Fields(l))
	}
	return rows
}

// TestReportIsTheConsole: the report's table has the same figures as the console's.
func TestReportIsTheConsole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	rows := consoleRows(printed(t, policiesTrace, "--gpu-count", "3", "--policy", "magm,carma,OR-MAGM", "--html", file))
	html, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(html), `<table class="summary">`)
	table, _, _ = strings.Cut(table, "</table>")
	table = strings.NewReplacer(`<span aria-hidden="true">★ </span>`, "", `<span class="unseen"> (best)</span>`, "", "<b>", "", "</b>", "").Replace(table)
	named := regexp.MustCompile(`<i class="chip[^>]*></i>(?:<a [^>]*>)?([^<]*)`)
	cells := regexp.MustCompile(`<td[^>]*>([^<]*)(?:<small>([^<]*)</small>)?</td>`)
	var got [][]string
	for _, row := range strings.Split(table, "<tr>")[2:] {
		line := []string{named.FindStringSubmatch(row)[1]}
		ratio := "1.000" // of the baseline to itself
		for i, c := range cells.FindAllStringSubmatch(row, -1) {
			if i == 0 && c[2] != "" {
				ratio = strings.TrimPrefix(c[2], "× ")
			}
			if i < 12 {
				line = append(line, c[1])
			}
		}
		got = append(got, append(line, ratio))
	}
	if !slices.EqualFunc(got, rows[1:], slices.Equal[[]string]) {
		t.Errorf("the report has\n%v\nthe console\n%v", got, rows[1:])
	}
	for _, fact := range []string{"14 tasks", "3 × ", "tasks share a GPU by MPS", "memory, activity and run times of the tasks known before", "baseline"} {
		if !strings.Contains(string(html), fact) {
			t.Errorf("the report does not say %q", fact)
		}
	}
}
