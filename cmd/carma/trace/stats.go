package trace

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/report"
	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/load"
	"carma/configs/traces/mixes"
)

// loadStats describe a load. Times are seconds.
type loadStats struct {
	Name    string `json:"name"`
	Format  string `json:"format"`
	Entries int    `json:"entries"`
	Tasks   int    `json:"tasks"` // on GPUs
	NoGPUs  int    `json:"without_gpus"`
	Broken  int    `json:"broken"`
	First   string `json:"first,omitempty"` // in the log's own format
	// Span is the time from the first arrival to the last.
	Span float64    `json:"span_s"`
	Gaps spreadJSON `json:"gaps"`
	Runs spreadJSON `json:"run_times"` // known run times
	GPUs []share    `json:"gpus"`
	// AlikeNext and AlikePairs are the shares of tasks that repeat others.
	AlikeNext  float64        `json:"alike_next"`
	AlikePairs float64        `json:"alike_pairs"`
	States     map[string]int `json:"states,omitempty"`
	Classes    map[string]int `json:"classes"`
	// Load is the offered load on GPUCount GPUs.
	Load     float64    `json:"load"`
	GPUCount int        `json:"load_gpus"`
	Series   seriesJSON `json:"series"`
}

type spreadJSON struct {
	Count  int     `json:"count"`
	Min    float64 `json:"min_s"`
	P5     float64 `json:"p5_s"`
	Median float64 `json:"median_s"`
	Mean   float64 `json:"mean_s"`
	P95    float64 `json:"p95_s"`
	Max    float64 `json:"max_s"`
}

// share counts the tasks that request a number of GPUs.
type share struct {
	GPUs  int `json:"gpus"`
	Tasks int `json:"tasks"`
}

type seriesJSON struct {
	Bin      float64   `json:"bin_s"`
	Arrivals []int     `json:"arrivals"`
	Demand   []float64 `json:"gpus_in_demand"`
}

// pictureBins is the number of columns in the picture of the load over time; htmlBins is
// the number of steps in a report.
const (
	pictureBins = 64
	htmlBins    = 400
)

func statsCommand(a *cli.App) *cobra.Command {
	var skipBroken bool
	var html string
	gpus := 4
	cmd := &cobra.Command{
		Use:   "stats FILE|TRACE [flags]",
		Short: "Describe a log or a trace: gaps, GPUs, run times, load over time",
		Long: `Describe the jobs on GPUs of a log, of arrivals, or of a trace:
gaps between arrivals, run times alone, numbers of GPUs, how jobs ended, classes
and load over time. The picture shows how many GPUs would be busy if every task
began as it arrives. Load is the GPU time of all tasks divided by that of
--gpu-count GPUs from the first arrival to the last. Run times of jobs whose
start or end is not in the log do not count. Tasks that repeat others are told
by how often one is like its user's task before, and like any of that user.`,
		Example: `  carma trace stats cluster_job_log
  carma trace stats philly-t1-60 --html stats.html`,
		Args: oneInput,
	}
	flags := cmd.Flags()
	flags.StringVar(&html, "html", "", "write a report with charts to this `file`")
	cli.CountFlag(flags, &gpus, 1, "gpu-count", "number of GPUs that the load refers to (default: 4)")
	flags.BoolVar(&skipBroken, "skip-broken", false, "leave out broken entries of the log")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if flags.Changed("html") {
			if html == "" {
				return cli.Usagef("write for example --html stats.html", "--html: the file has no name")
			}
			if err := cli.Writable(&html, args); err != nil {
				return cli.Usagef("", "--html: %v", err)
			}
		}
		l, err := readLoad(a, args[0], skipBroken)
		if err != nil {
			return err
		}
		s := stats(l, gpus, pictureBins)
		if html != "" {
			page := page(l, &s)
			if err := cli.ReplaceFile(html, func(w io.Writer) error { return report.WriteLoad(w, page) }); err != nil {
				return fmt.Errorf("--html: %w", err)
			}
		}
		if *asJSON {
			return a.JSON(s)
		}
		return s.write(a.Out)
	}
	return cmd
}

// stats describes a load.
func stats(l *load.Load, gpus, bins int) loadStats {
	list := l.List
	s := loadStats{
		Name: l.Name, Format: l.Format, Entries: l.Entries, Tasks: len(list.Arrivals), NoGPUs: l.NoGPUs, Broken: l.Broken.Count,
		Span: list.Span().Seconds(), Gaps: newSpread(list.Gaps()), Runs: newSpread(list.RunTimes()),
		States: map[string]int{}, Classes: map[string]int{}, Load: list.Load(gpus), GPUCount: gpus,
	}
	if !list.First.IsZero() {
		s.First = joblog.FormatTime(list.First)
	}
	s.AlikeNext, s.AlikePairs = list.Alike()
	mix := list.GPUMix()
	for _, n := range slices.Sorted(maps.Keys(mix)) {
		s.GPUs = append(s.GPUs, share{n, mix[n]})
	}
	for _, c := range mixes.Classes {
		s.Classes[c.String()] = 0
	}
	for i := range list.Arrivals {
		one := &list.Arrivals[i]
		if one.State != "" {
			s.States[string(one.State)]++
		}
		if one.RunTime != joblog.Unknown {
			s.Classes[mixes.ClassOf(one.GPUs, one.RunTime).String()]++
		}
	}
	over := list.Over(bins)
	s.Series = seriesJSON{over.Bin.Seconds(), over.Arrivals, over.Demand}
	return s
}

func newSpread(sorted []time.Duration) spreadJSON {
	s := arrivals.SpreadOf(sorted)
	return spreadJSON{s.Count, s.Min.Seconds(), s.P5.Seconds(), s.Median.Seconds(), s.Mean.Seconds(), s.P95.Seconds(), s.Longest.Seconds()}
}

// write prints the figures for people.
func (s *loadStats) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %d tasks on GPUs%s\n", cli.Printable(s.Name), s.Format, s.Tasks, s.besides())
	span := fmt.Sprintf("arriving within %s", ageOf(s.Span))
	if s.First != "" {
		span += " from " + s.First + " on"
	}
	fmt.Fprintf(w, "%s; load %.2f on %d GPUs\n\n", span, s.Load, s.GPUCount)
	t := &cli.Table{Columns: []cli.Column{{Title: "TIME"}, {Title: "N", Right: true}, {Title: "MIN", Right: true}, {Title: "P5", Right: true}, {Title: "MEDIAN", Right: true}, {Title: "MEAN", Right: true}, {Title: "P95", Right: true}, {Title: "MAX", Right: true}}}
	for _, r := range []struct {
		name string
		s    spreadJSON
	}{{"gap", s.Gaps}, {"run time", s.Runs}} {
		if r.s.Count == 0 {
			continue
		}
		t.Add(r.name, fmt.Sprint(r.s.Count), ageOf(r.s.Min), ageOf(r.s.P5), ageOf(r.s.Median), ageOf(r.s.Mean), ageOf(r.s.P95), ageOf(r.s.Max))
	}
	if err := t.Write(w, 0); err != nil {
		return err
	}
	fmt.Fprintln(w)
	s.writeShares(w)
	s.writePicture(w)
	return nil
}

func ageOf(seconds float64) string { return cli.Age(time.Duration(seconds * float64(time.Second))) }

// besides describes the other entries of the file.
func (s *loadStats) besides() string {
	out := ""
	if s.NoGPUs > 0 {
		out += fmt.Sprintf(", %d without", s.NoGPUs)
	}
	if s.Broken > 0 {
		out += fmt.Sprintf(", %d broken entries left out", s.Broken)
	}
	return out
}

// writeShares prints the tasks' GPUs, classes and states as bars.
func (s *loadStats) writeShares(w io.Writer) {
	bar := func(name string, n, of int) {
		part := float64(n) / float64(max(1, of))
		line := fmt.Sprintf("  %-8s %6d  %5.1f %%  %s", name, n, 100*part, strings.Repeat("█", int(part*40+0.5)))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w, "GPUs")
	for _, g := range s.GPUs {
		bar(fmt.Sprint(g.GPUs), g.Tasks, s.Tasks)
	}
	if s.Runs.Count > 0 {
		fmt.Fprintln(w, "class (light under 10 min, heavy over 1 h or on several GPUs)")
		for _, c := range mixes.Classes {
			bar(c.String(), s.Classes[c.String()], s.Runs.Count)
		}
	}
	if s.AlikePairs > 0 {
		fmt.Fprintf(w, "like the one before (same user and GPUs, run time within 10 %%): %.1f %% of tasks; of all pairs %.1f %%\n", 100*s.AlikeNext, 100*s.AlikePairs)
	}
	if len(s.States) > 0 {
		fmt.Fprintln(w, "ended")
		for _, state := range slices.Sorted(maps.Keys(s.States)) {
			bar(state, s.States[state], s.Tasks)
		}
	}
	fmt.Fprintln(w)
}

// pictureRows is the height of the picture.
const pictureRows = 5

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// writePicture draws the GPUs in demand over time.
func (s *loadStats) writePicture(w io.Writer) {
	demand := s.Series.Demand
	most := slices.Max(demand)
	if most == 0 {
		return
	}
	fmt.Fprintf(w, "GPUs in demand, 0 to %.4g; a column is %s\n", most, ageOf(s.Series.Bin))
	for row := pictureRows - 1; row >= 0; row-- {
		var b strings.Builder
		for _, v := range demand {
			level := v / most * pictureRows * 8
			b.WriteRune(eighths[max(0, min(8, int(level+0.5)-row*8))])
		}
		fmt.Fprintln(w, strings.TrimRight("  "+b.String(), " "))
	}
}

// page returns the report's data.
func page(l *load.Load, s *loadStats) report.Load {
	over := l.List.Over(htmlBins)
	p := report.Load{
		Name: s.Name, Gaps: l.List.Gaps(), RunTimes: l.List.RunTimes(),
		Bin: over.Bin, Demand: over.Demand, Arrivals: over.Arrivals,
		Facts: []string{s.Format, fmt.Sprintf("%d tasks on GPUs%s", s.Tasks, s.besides()), "arriving within " + ageOf(s.Span), fmt.Sprintf("load %.2f on %d GPUs", s.Load, s.GPUCount)},
	}
	if s.First != "" {
		p.Facts = append(p.Facts, "from "+s.First+" on")
	}
	for _, g := range s.GPUs {
		p.GPUs = append(p.GPUs, report.Share{Name: fmt.Sprint(g.GPUs), Count: g.Tasks})
	}
	for _, c := range mixes.Classes {
		p.Classes = append(p.Classes, report.Share{Name: c.String(), Count: s.Classes[c.String()]})
	}
	for _, state := range slices.Sorted(maps.Keys(s.States)) {
		p.States = append(p.States, report.Share{Name: state, Count: s.States[state]})
	}
	return p
}
