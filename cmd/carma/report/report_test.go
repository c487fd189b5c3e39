package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/sim"
)

// simulated is a small server's replay under the policies.
func simulated(t testing.TB, tasks, gpus int, policies ...string) Data {
	t.Helper()
	d := Data{Trace: "a trace", Description: "of a test", Server: "station", Facts: []string{"estimator none"}}
	var devices []sim.GPU
	for i := range gpus {
		devices = append(devices, sim.GPU{ID: mapper.GPUID(fmt.Sprint("GPU-", i)), Index: i, Model: "A100", Memory: 40 * units.GiB, IdlePower: 50, PeakPower: 400, Speed: 1})
		d.GPUs = append(d.GPUs, GPU{i, "A100", 40 * units.GiB})
	}
	var submitted []sim.Task
	for i := range tasks {
		submitted = append(submitted, sim.Task{
			At: time.Duration(i) * time.Minute, Name: fmt.Sprint("task-", i+1), GPUs: 1, SoloTime: time.Duration(10+i%9*5) * time.Minute,
			Context: units.GiB / 2, Memory: []units.Bytes{units.Bytes(6+i%4*6) * units.GiB}, Loads: []sim.Load{{SMACT: 0.3 + 0.05*float64(i%8), DRAMA: 0.2}},
			Estimate: mapper.Estimate{Memory: 6 * units.GiB},
		})
	}
	for _, p := range policies {
		opt := mapper.DefaultOptions()
		opt.Policy, opt.WarmUp = p, 0
		r, err := sim.Run(sim.Config{Options: opt, GPUs: devices, StartUp: time.Second, Timeline: true}, submitted)
		if err != nil {
			t.Fatal(err)
		}
		run := Run{Policy: p, Metrics: r.Metrics, Timeline: r.Timeline}
		for i, task := range r.Tasks {
			run.Tasks = append(run.Tasks, Task{
				ID: task.ID, Name: task.Task.Name, Kind: fmt.Sprint("kind ", i%12), Phase: task.Phase, Reason: task.Reason, Record: task.Record,
			})
		}
		d.Runs = append(d.Runs, run)
	}
	return d
}

func written(t testing.TB, all ...Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// content is what a page has: how many elements of each name, and its text.
type content struct {
	elements map[string]int
	text     string
}

// parse reads a page as strictly as XML is read, and looks for what could not
// stand in a page of its own.
func parse(t testing.TB, html string) content {
	t.Helper()
	c := content{elements: map[string]int{}}
	body, ok := strings.CutPrefix(html, "<!DOCTYPE html>")
	if !ok {
		t.Error("no document type")
	}
	ids, text := map[string]bool{}, strings.Builder{}
	for d := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			c.elements[token.Name.Local]++
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "id":
					if ids[a.Value] {
						t.Errorf("id %s is there twice", a.Value)
					}
					ids[a.Value] = true
				case "src", "onload", "onclick", "srcdoc":
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				case "href":
					if !strings.HasPrefix(a.Value, "#") {
						t.Errorf("a link to %s", a.Value)
					}
				}
			}
		case xml.CharData:
			text.Write(token)
			text.WriteByte('\n')
		}
	}
	c.text = text.String()
	for _, bad := range []string{"http:", "https:", "@import", "url(", "NaN", "Inf", "Liberation Sans;", "#102", "#3040", "#5060", "ZgotmplZ"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, name := range []string{"script", "link", "iframe", "img", "image", "object"} {
		if c.elements[name] > 0 {
			t.Errorf("%d <%s>", c.elements[name], name)
		}
	}
	return c
}

func TestPage(t *testing.T) {
	d := simulated(t, 40, 3, "exclusive", "magm")
	html := written(t, d)
	c := parse(t, html)
	for name, want := range map[string]int{
		"tr": 1 + 2, "h1": 1, "svg": 3 + 2*(1+2*3+2), "circle": 2 * 40, "nav": 0,
	} {
		if c.elements[name] != want {
			t.Errorf("%d <%s>, want %d", c.elements[name], name, want)
		}
	}
	m := d.Runs[1].Metrics
	for _, want := range []string{
		"a trace", "of a test", "40 tasks", "server station", "3 × A100 with 40 GiB", "estimator none", "Memory (GiB)", "SM activity (%)",
		"Power of all GPUs (W)", "Queue (tasks)", "ran out of GPU memory\n", Span(m.Makespan) + "\n", Span(m.P95JCT) + "\n", energy(m.EnergyJ) + "\n",
		ratio(m.RatioTo(d.Runs[0].Metrics).MeanJCT) + "\n", percent(m.MeanSMACT) + "\n", "GPU 2\n", "task 17: task-17 · GPU ",
	} {
		if !strings.Contains(c.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	ooms := 0
	for i := range d.Runs {
		ooms += d.Runs[i].Metrics.OOMs
	}
	if got := strings.Count(c.text, ", out of GPU memory\n"); ooms == 0 || got != ooms {
		t.Errorf("%d OOMs are marked, there were %d", got, ooms)
	}
}

// TestSummary: a row per policy, ratios to exclusive and none of its own.
func TestSummary(t *testing.T) {
	d := simulated(t, 20, 2, "magm", "exclusive")
	d.Runs[0].Metrics.Failed = 3
	header, rows := summary(d.Runs, &d.Runs[1])
	if len(rows) != 2 || len(rows[0].Cells) != len(header) || rows[0].Policy.Name != "magm" {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	if got, want := rows[0].Cells[1].Ratio, ratio(d.Runs[0].Metrics.RatioTo(d.Runs[1].Metrics).MeanJCT); got != want || got == "" {
		t.Errorf("mean JCT %s, want %s", got, want)
	}
	if rows[0].Cells[0].Ratio != "3 failed" {
		t.Errorf("makespan %v of a run with failures", rows[0].Cells[0])
	}
	for i, c := range rows[1].Cells {
		if c.Ratio != "" {
			t.Errorf("exclusive: %s is %s of itself", header[i], c.Ratio)
		}
	}
}

// TestReference: ratios are to the run that is named, though it is not shown.
func TestReference(t *testing.T) {
	d := simulated(t, 20, 2, "magm", "exclusive")
	other := d.Runs[1]
	d.Runs, d.Reference = d.Runs[:1], &other
	s, err := newSection(&d, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := ratio(d.Runs[0].Metrics.RatioTo(other.Metrics).MeanJCT); s.RatioTo != "exclusive" || s.Rows[0].Cells[1].Ratio != want {
		t.Errorf("relative to %s: %s, want %s", s.RatioTo, s.Rows[0].Cells[1].Ratio, want)
	}
}

// TestSeveralTraces: a section for each, and links to them.
func TestSeveralTraces(t *testing.T) {
	c := parse(t, written(t, simulated(t, 5, 1, "magm"), simulated(t, 6, 2, "lug", "exclusive")))
	if c.elements["h1"] != 2 || c.elements["nav"] != 1 || c.elements["a"] != 2 || !strings.Contains(c.text, "relative to magm") || !strings.Contains(c.text, "relative to exclusive") {
		t.Errorf("%d headings, %d links", c.elements["h1"], c.elements["a"])
	}
}

// TestSameBytes: equal data, equal page.
func TestSameBytes(t *testing.T) {
	first := written(t, simulated(t, 40, 3, "exclusive", "magm", "lug"))
	for range 5 {
		if written(t, simulated(t, 40, 3, "exclusive", "magm", "lug")) != first {
			t.Fatal("two reports on the same data differ")
		}
	}
	if dated := regexp.MustCompile(`20\d\d-\d\d`).FindString(first); dated != "" {
		t.Errorf("the report has a date: %s", dated)
	}
}

// TestHostileText: whatever the names, they are text.
func TestHostileText(t *testing.T) {
	const bad = "</title></svg><script>alert('1')</script><evil>&amp;\"]]>--\x00\x1b\xff\ufffe"
	const shown = "</title></svg><script>alert('1')</script><evil>&amp;\"]]>--\ufffd\ufffd\ufffd\ufffd"
	d := simulated(t, 8, 2, "exclusive", "magm")
	d.Trace, d.Description, d.Server, d.Facts, d.GPUs[1].Model = bad, bad, bad, []string{bad}, bad
	r := &d.Runs[1]
	r.Policy = bad
	for i := range r.Tasks {
		r.Tasks[i].Name, r.Tasks[i].Kind, r.Tasks[i].Reason = bad, bad, bad
	}
	r.Tasks[3].Phase = mapper.Failed
	for i := range r.Timeline.Spans {
		r.Timeline.Spans[i].Name = bad
	}
	for i := range r.Timeline.GPUs {
		r.Timeline.GPUs[i].Model = bad
	}
	c := parse(t, written(t, d))
	if c.elements["evil"] != 0 || c.elements["title"] == 0 {
		t.Errorf("%d <evil>, %d titles", c.elements["evil"], c.elements["title"])
	}
	for _, where := range []string{
		"carma replay: " + shown, "server " + shown, "with 40 GiB", "task 4 (" + shown + ") failed: " + shown, "task 5: " + shown + " · GPU",
		shown + ", task 2: " + shown,
	} {
		if !strings.Contains(c.text, where) {
			t.Errorf("the page does not have %q", where)
		}
	}
}

// TestLittle: data with hardly anything in it.
func TestLittle(t *testing.T) {
	full := simulated(t, 3, 1, "magm")
	none := full
	none.Runs = nil
	noTimeline := simulated(t, 3, 1, "magm")
	noTimeline.Runs[0].Timeline = nil
	noTasks := simulated(t, 0, 1, "magm", "exclusive")
	noGPUs := simulated(t, 2, 1, "magm")
	noGPUs.Runs[0].Timeline.GPUs, noGPUs.Runs[0].Timeline.Spans = nil, nil
	strangers := simulated(t, 3, 1, "magm") // spans of tasks that are not listed
	strangers.Runs[0].Tasks = nil
	for name, all := range map[string][]Data{
		"nothing": nil, "no runs": {none}, "no timeline": {noTimeline}, "no tasks": {noTasks}, "no GPUs": {noGPUs},
		"unknown tasks": {strangers}, "empty": {{}}, "an empty run": {{Runs: []Run{{}}}},
	} {
		t.Run(name, func(t *testing.T) { parse(t, written(t, all...)) })
	}
}

// TestWriterFails: an error is not lost.
func TestWriterFails(t *testing.T) {
	if err := Write(full{}, []Data{simulated(t, 3, 1, "magm")}); err == nil {
		t.Error("no error")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFailures(t *testing.T) {
	var tasks []Task
	for i := range shownFailures + 7 {
		tasks = append(tasks, Task{ID: mapper.TaskID(i + 1), Name: "n", Phase: mapper.Failed, Reason: "r"}, Task{Phase: mapper.Succeeded})
	}
	got := failures(tasks)
	if len(got) != shownFailures+1 || got[0] != "task 1 (n) failed: r" || got[shownFailures] != "and 7 more" {
		t.Errorf("%q", got)
	}
}

func TestAlike(t *testing.T) {
	d := simulated(t, 10, 2, "exclusive", "magm", "magm")
	d.Runs[2].Policy = "again"
	if got := alike(d.Runs); got != "Every task has the same times under again as under magm." {
		t.Error(got)
	}
	if got := alike(d.Runs[:2]); got != "" {
		t.Error(got)
	}
}

// TestUsersAndEnergy: several users have a table of what their tasks used, one has
// none; a task's tooltip says what it used.
func TestUsersAndEnergy(t *testing.T) {
	d := simulated(t, 20, 2, "magm")
	r := &d.Runs[0]
	r.Users = []User{{"", 19, 2 * time.Hour, 3e6}}
	r.Tasks[4].EnergyJ = 54_321
	if text := parse(t, written(t, d)).text; strings.Contains(text, "GPUs without tasks") || !strings.Contains(text, "task 5: task-5 · GPU ") ||
		!strings.Contains(text, " · the task used 54.3 kJ\n") {
		t.Error("one user, and 54.3 kJ of task 5, are not shown so")
	}
	r.Metrics.EnergyJ, r.Metrics.IdleJ = 4e6, 0.5e6
	r.Users = append(r.Users, User{"<ann>", 1, time.Minute, 0.5e6})
	text := parse(t, written(t, d)).text
	for _, want := range []string{"(none)\n19\n2h00m\n3.00 MJ\n75.0 %\n", "<ann>\n1\n1m00s\n0.50 MJ\n12.5 %\n", "GPUs without tasks\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
