package report

import (
	"io"
	"time"
)

// Load describes arrivals over time: a log or a trace before it is replayed.
type Load struct {
	Name  string
	Facts []string
	// Gaps contains the gaps between arrivals, RunTimes the run times, both sorted.
	Gaps, RunTimes        []time.Duration
	GPUs, Classes, States []Share
	Bin                   time.Duration // bin of the next two fields
	Demand                []float64     // number of busy GPUs if every task began on arrival
	Arrivals              []int         // number of tasks
}

// Share counts the tasks of a kind.
type Share struct {
	Name  string
	Count int
}

// loadData contains the data from which the page's script draws a load. Times are
// seconds.
type loadData struct {
	Bin            float64
	Demand         []float64
	Arrivals       []int
	Gaps, RunTimes []float64 // sorted
}

// shares is a table of counts of one kind.
type shares struct {
	Title string
	List  []shareRow
}

// shareRow is a line of shares. Percent is the percentage of all tasks, Bar the length of
// the bar in per cent of the longest bar.
type shareRow struct {
	Share
	Percent, Bar float64
}

// WriteLoad writes a self-contained page about a load.
func WriteLoad(w io.Writer, l Load) error {
	p := struct {
		frame
		Name   string
		Facts  []string
		Data   loadData
		Shares []shares
	}{
		frame: newFrame("carma trace: "+clean(l.Name), "load.js"), Name: clean(l.Name),
		Data: loadData{Bin: l.Bin.Seconds(), Demand: l.Demand, Arrivals: l.Arrivals, Gaps: inSeconds(l.Gaps), RunTimes: inSeconds(l.RunTimes)},
	}
	for _, f := range l.Facts {
		p.Facts = append(p.Facts, clean(f))
	}
	p.Shares = append(p.Shares, newShares("GPUs per task", l.GPUs)...)
	p.Shares = append(p.Shares, newShares("Class: light under 10 min, heavy over 1 h or on several GPUs", l.Classes)...)
	p.Shares = append(p.Shares, newShares("How tasks ended", l.States)...)
	return execute(w, "load.html", p)
}

// inSeconds returns some of the times, see [thinned].
func inSeconds(sorted []time.Duration) []float64 {
	all := make([]float64, len(sorted))
	for i, d := range sorted {
		all[i] = tenths(d)
	}
	return thinned(all)
}

// newShares returns the table of some counts, or nothing if there are none.
func newShares(title string, counts []Share) []shares {
	if len(counts) == 0 {
		return nil
	}
	sum, most := 0, 1
	for _, one := range counts {
		sum, most = sum+one.Count, max(most, one.Count)
	}
	s := shares{Title: title}
	for _, one := range counts {
		s.List = append(s.List, shareRow{one, 100 * float64(one.Count) / float64(max(1, sum)), 100 * float64(one.Count) / float64(most)})
	}
	return []shares{s}
}
