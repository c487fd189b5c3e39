package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// result is a line of go test's output.
const result = "BenchmarkGrowth/steady/1000 \t 1\t20034242 ns/op\t 27.40 events/task\t 800.1 ns/event\t 731.3 cpu-ns/event\t 61.5 peak-MiB\t 3.7 waiting-s\n"

func measured(t *testing.T) []*series {
	t.Helper()
	all := newSeries()
	for _, s := range all {
		for i := range s.points {
			for _, ns := range []string{"731.3", "900.0", "700.0"} {
				if err := s.points[i].add(strings.Replace(result, "731.3", ns, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return all
}

func TestTable(t *testing.T) {
	got := table(measured(t))
	if want := "| backlog | 1,000,000 | 27.4 | 700, 731, 900 ns | 1.00 | 0.02, 0.02, 0.02 s | 62 MiB |\n"; !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 10 {
		t.Errorf("%s\nwant at the end %s", got, want)
	}
	var p point
	for _, bad := range []string{"", "BenchmarkGrowth/steady/1000 1 x ns/op", strings.Replace(result, "61.5 peak-MiB", "", 1)} {
		if err := p.add(bad); err == nil || len(p.runs) > 0 {
			t.Errorf("%q is a result: %+v", bad, p.runs)
		}
	}
}

// TestPlot: the plot is valid XML and shows every point.
func TestPlot(t *testing.T) {
	svg := plot(measured(t))
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 8 || strings.Contains(svg, "NaN") || !strings.Contains(svg, ">1,000,000<") {
		t.Errorf("%d points in %s", n, svg)
	}
}
