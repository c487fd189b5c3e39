package report

import (
	"strings"
	"testing"
	"time"
)

func TestWriteLoad(t *testing.T) {
	l := Load{
		Name: "a <b>log</b>", Facts: []string{"Philly log", "x & y"},
		Gaps: []time.Duration{0, time.Second, 90 * time.Second}, RunTimes: []time.Duration{time.Minute, 30 * time.Hour},
		GPUs: []Share{{"1", 3}, {"8", 1}}, Classes: []Share{{"light", 4}}, Bin: time.Minute, Demand: []float64{0.5, 12, 3}, Arrivals: []int{2, 0, 1},
	}
	var a, b strings.Builder
	if err := WriteLoad(&a, l); err != nil {
		t.Fatal(err)
	}
	_ = WriteLoad(&b, l)
	page := a.String()
	if page != b.String() {
		t.Error("equal data, other bytes")
	}
	for _, want := range []string{
		"<h1>a &lt;b&gt;log&lt;/b&gt;</h1>", "Philly log · x &amp; y", "Tasks that arrive within 1m", ">10 h<", ">75.0 %<", ">25.0 %<", `width="66.7"`, ">100.0 %<", "<h3>GPUs per task</h3>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(page, `role="img"`); n != 4 {
		t.Errorf("%d pictures, want 4", n)
	}
	for _, not := range []string{"<script", "<b>", "http", "How tasks ended", ">10 y<"} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org", ""), not) {
			t.Errorf("there is %s", not)
		}
	}
	// With nothing in it there is a page, too.
	if err := WriteLoad(&a, Load{Name: "none", Bin: time.Second, Demand: []float64{0}, Arrivals: []int{0}}); err != nil {
		t.Error(err)
	}
}
