package report

import (
	"encoding/json"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// data returns the data of each trace for the page's script.
func data(t testing.TB, html string) (all []sectionData) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?s)<script type="application/json" data-for="t\d+">(.*?)</script>`).FindAllStringSubmatch(html, -1) {
		var d sectionData
		if err := json.Unmarshal([]byte(m[1]), &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// checked returns a page without its scripts and styles, after checks that it is valid
// and links to no other file.
func checked(t testing.TB, html string) string {
	t.Helper()
	if !strings.HasPrefix(html, "<!DOCTYPE html>") {
		t.Error("no document type")
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("id %s is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` (href|src)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(m[2], "#") {
			t.Errorf("a link to %s", m[2])
		}
	}
	for _, name := range []string{"<link", "<iframe", "<img", "<image", "<object", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(html, name) {
			t.Errorf("the page has %s", name)
		}
	}
	data(t, html)
	return regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(script|style)>`).ReplaceAllString(html, "")
}

func TestPage(t *testing.T) {
	d := simulated(t, 40, 3, "exclusive", "magm")
	html := written(t, d)
	text := checked(t, html)
	m := d.Runs[1].Metrics
	for _, want := range []string{
		"a trace", "of a test", "40 tasks", "server station", "3 × A100 with 40 GiB", "estimator none", "ran out of GPU memory", Span(m.Makespan), Span(m.P95JCT),
		Megajoules(m.EnergyJ), Ratio(m.RatioTo(d.Runs[0].Metrics).MeanJCT), "Of 2 policies, ", "<small>baseline</small>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	got := data(t, html)[0]
	if len(got.Runs) != 2 || len(got.Tasks.ID) != 40 || len(got.Runs[1].GPUs) != 3 {
		t.Fatalf("%d policies, %d tasks", len(got.Runs), len(got.Tasks.ID))
	}
	for i := range d.Runs {
		ooms := 0
		for _, o := range got.Runs[i].Spans.Outcome {
			if o == outcomes[sim.OutcomeOOM] {
				ooms++
			}
		}
		if want := d.Runs[i].Metrics.OOMs; ooms != want || i == 1 && want == 0 {
			t.Errorf("%d OOMs are marked, there were %d", ooms, want)
		}
		sum := 0.0
		for _, v := range got.Runs[i].Tasks.JCT {
			sum += v / 40
		}
		if want := d.Runs[i].Metrics.MeanJCT.Seconds(); math.Abs(sum-want) > 0.1 {
			t.Errorf("mean JCT of the tasks %v s, in the table %v s", sum, want)
		}
	}
}

// TestCurvesKeepTheArea: the drawn curve has the same area as the full one, with few
// points.
func TestCurvesKeepTheArea(t *testing.T) {
	for _, tasks := range []int{6, 900} {
		line := simulated(t, tasks, 1, "magm").Runs[0].Timeline
		for name, c := range map[string]sim.Curve{"used": line.GPUs[0].Used, "SMACT": line.GPUs[0].SMACT, "queue": line.Queue} {
			got := curveOf(line, c, 2, 1e6)
			if len(got.Y) > exact || (len(c) > exact) != (got.X == nil) {
				t.Errorf("%s of %d tasks: %d points for %d", name, tasks, len(got.Y), len(c))
			}
			area := 0.0
			for i, v := range got.Y {
				from, to := got.End*float64(i)/float64(len(got.Y)), got.End*float64(i+1)/float64(len(got.Y))
				if got.X != nil {
					if from, to = got.X[i], got.End; i+1 < len(got.X) {
						to = got.X[i+1]
					}
				}
				area += v * (to - from)
			}
			if want := 2 * c.Integral(line.Start, line.End); math.Abs(area/want-1) > 1e-3 {
				t.Errorf("%s of %d tasks: an area of %v, want %v", name, tasks, area, want)
			}
		}
	}
}

// TestManyTasks checks that a report with too many tasks contains only the distributions.
func TestManyTasks(t *testing.T) {
	defer func(n int) { shownTasks = n }(shownTasks)
	d := simulated(t, 1500, 2, "magm")
	shownTasks = 1499
	whole := len(written(t, d))
	got := data(t, written(t, d))[0]
	if jct := got.Runs[0].Tasks.JCT; !got.Many || len(jct) != stoodFor || len(got.Tasks.ID) != 0 || len(got.Runs[0].Spans.Task) != 0 || len(got.Runs[0].Queue.Y) == 0 {
		t.Errorf("%d times, %d tasks, %d attempts", len(jct), len(got.Tasks.ID), len(got.Runs[0].Spans.Task))
	} else if worst := tenths(d.Runs[0].Metrics.WorstJCT); jct[stoodFor-1] != worst {
		t.Errorf("the longest of the times is %v s, of all %v s", jct[stoodFor-1], worst)
	}
	if shownTasks = 1500; len(written(t, d)) < whole+50_000 {
		t.Errorf("%d bytes with all tasks, %d without", len(written(t, d)), whole)
	}
}

// TestSeveralTraces checks that a report on several traces has a section for each trace, and
// links to the sections.
func TestSeveralTraces(t *testing.T) {
	text := checked(t, written(t, simulated(t, 5, 1, "magm"), simulated(t, 6, 2, "lug", "exclusive")))
	if strings.Count(text, "<h1 ") != 2 || strings.Count(text, "<nav") != 1 || !strings.Contains(text, "ratios to magm") || !strings.Contains(text, "ratios to exclusive") {
		t.Error(text)
	}
}

// TestSameBytes checks that equal data give an equal page.
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

// TestHostileText checks that any name is shown as text. TestReportInBrowser opens such a
// report.
func TestHostileText(t *testing.T) {
	const bad = "</title></svg></script><script>alert('1')</script><evil>&amp;\"]]>--\x00\x1b\xff\ufffe"
	d := simulated(t, 8, 2, "exclusive", "magm")
	d.Trace, d.Description, d.Server, d.Facts, d.GPUs[1].Model = bad, bad, bad, []string{bad}, bad
	r := &d.Runs[1]
	r.Policy = bad
	for i := range r.Tasks {
		r.Tasks[i].Name, r.Tasks[i].Kind, r.Tasks[i].Reason = bad, bad, bad
		d.Runs[0].Tasks[i].Name, d.Runs[0].Tasks[i].Kind = bad, bad
	}
	r.Tasks[3].Phase = model.Failed
	html := written(t, d)
	if strings.Contains(html, "<evil") || strings.Contains(html, "<script>alert") || strings.ContainsAny(html, "\x00\x1b") {
		t.Error("a name is markup")
	}
	got := data(t, html)[0]
	if want := clean(bad); got.Names[0] != want || got.Runs[1].Policy != want || got.Trace != want {
		t.Errorf("%q", got.Names)
	}
	var picture strings.Builder
	if err := WritePicture(&picture, d, d.Runs); err != nil || strings.Contains(picture.String(), "<evil") || strings.Contains(picture.String(), "<script") {
		t.Errorf("%v %s", err, picture.String())
	}
}

// TestLittle checks reports on nearly empty data.
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
		t.Run(name, func(t *testing.T) { checked(t, written(t, all...)) })
	}
}

// TestWriterFails checks that an error of the writer is returned.
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
		tasks = append(tasks, Task{ID: model.TaskID(i + 1), Name: "n", Phase: model.Failed, Reason: "r"}, Task{Phase: model.Succeeded})
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

// TestUsers checks that a report has a table of the users' usage only if there are several
// users.
func TestUsers(t *testing.T) {
	d := simulated(t, 20, 2, "magm")
	r := &d.Runs[0]
	r.Users = []User{{"", 19, 2 * time.Hour, 3e6}}
	if strings.Contains(checked(t, written(t, d)), "GPUs without tasks") {
		t.Error("one user is shown")
	}
	r.Metrics.EnergyJ, r.Metrics.IdleJ = 4e6, 0.5e6
	r.Users = append(r.Users, User{"<ann>", 1, time.Minute, 0.5e6})
	text := checked(t, written(t, d))
	for _, want := range []string{`(none)</th><td>19</td><td>2h00m</td><td>3.00 MJ</td><td>75.0 %</td>`, `&lt;ann&gt;</th><td>1</td><td>1m00s</td><td>0.50 MJ</td><td>12.5 %</td>`, "GPUs without tasks"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestPicture checks that the chart shows every attempt on its own line, and connects a
// suspended attempt with its resumption.
func TestPicture(t *testing.T) {
	d := simulated(t, 40, 2, "exclusive", "magm")
	var out strings.Builder
	if err := WritePicture(&out, d, d.Runs); err != nil {
		t.Fatal(err)
	}
	svg := out.String()
	spans := len(d.Runs[0].Timeline.Spans) + len(d.Runs[1].Timeline.Spans)
	if got := strings.Count(svg, "<title>task "); got != spans || strings.Count(svg, `class="cross"`) != d.Runs[1].Metrics.OOMs+1 {
		t.Errorf("%d attempts, want %d", got, spans)
	}
	at := func(n int) units.Instant {
		return units.InstantOf(time.Unix(1_700_000_000, 0)).Add(time.Duration(n) * time.Minute)
	}
	span := func(task model.TaskID, gpu, from, to int, o sim.Outcome) sim.Span {
		return sim.Span{Task: task, Name: "<x>", GPU: gpu, Attempt: 1, Launched: at(from), Started: at(from), Ended: at(to), Outcome: o}
	}
	line := &sim.Timeline{Start: at(0), End: at(100), GPUs: []sim.GPUTimeline{{Index: 0}, {Index: 3}}, Spans: []sim.Span{
		span(1, 0, 0, 10, sim.OutcomeAway), span(2, 0, 10, 30, sim.OutcomeOK), span(1, 1, 30, 40, sim.OutcomeAway), span(1, 0, 55, 60, sim.OutcomeOK), span(3, 1, 60, 70, sim.OutcomeAway),
	}}
	out.Reset()
	away := []Run{{Policy: "magm", Timeline: line}}
	if err := WritePicture(&out, Data{Runs: away}, away); err != nil || strings.Count(out.String(), `class="away"`) != 2 {
		t.Errorf("%v, %d lines, want 2", err, strings.Count(out.String(), `class="away"`))
	}
}
