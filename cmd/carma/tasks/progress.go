package tasks

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Far formats the progress of a running task in a few letters, with ~ before a share
// while the count is unreliable. It is empty if the progress is unknown.
func Far(t *api.Task, now time.Time) string {
	p := t.Progress
	if p == nil {
		return ""
	}
	var parts []string
	switch {
	case p.Share > 0:
		parts = append(parts, Share(p))
	case p.Done > 0 && p.Unit != "":
		parts = append(parts, count(p.Done)+" "+p.Unit)
	}
	if !p.ETA.IsZero() {
		parts = append(parts, cli.Age(max(0, p.ETA.Sub(now)))+" left")
	}
	return strings.Join(parts, " ")
}

// Share formats the completed share of a task, with ~ while the count is unreliable.
func Share(p *api.Progress) string {
	if p.Doubt != "" {
		return "~" + percent(p.Share)
	}
	return percent(p.Share)
}

// Slowed returns the slowdown of a task, with ~ if it is predicted, or empty if the task
// has no neighbours.
func Slowed(t *api.Task) string {
	if t.Progress == nil || t.Progress.Slowdown == nil {
		return ""
	}
	s := t.Progress.Slowdown
	mark := "~"
	if s.Basis == "measured" {
		mark = ""
	}
	return fmt.Sprintf("%s%.1fx", mark, s.Value)
}

// percent formats a share. It returns 100 % only for a complete share.
func percent(share float64) string { return strconv.Itoa(int(100*share)) + "%" }

// count formats a number of steps or samples.
func count(n float64) string {
	if n == math.Trunc(n) && n < 1e15 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', 4, 64)
}

// progressText describes a running task's progress, its speed and its slowdown by
// neighbours, a line each.
func progressText(t *api.Task, now time.Time) string {
	p := t.Progress
	if p == nil {
		return ""
	}
	var b strings.Builder
	if p.Done > 0 {
		fmt.Fprintf(&b, "progress: %s%s%s\n", done(p), rate(p), doubt(p))
	}
	if !p.ETA.IsZero() {
		by := "by its progress"
		if p.ETABasis != "output" {
			by = "by earlier runs, or those of its model"
		}
		fmt.Fprintf(&b, "end: in about %s, at %s (%s)\n", cli.Age(max(0, p.ETA.Sub(now))), p.ETA.Local().Format("2006-01-02 15:04"), by)
	}
	if s := p.Slowdown; s != nil {
		how := "predicted; its output does not tell it"
		if s.Basis == "measured" {
			how = fmt.Sprintf("measured; predicted: %.2f", s.Predicted)
		}
		var beside []string
		for _, other := range s.Beside {
			beside = append(beside, strings.TrimSuffix(fmt.Sprintf("%d (%s)", other.ID, cli.Printable(other.Name)), " ()"))
		}
		fmt.Fprintf(&b, "speed: it takes %.2f times as long as alone (%s), beside task %s\n", s.Value, how, strings.Join(beside, ", "))
	}
	return b.String()
}

func done(p *api.Progress) string {
	text := count(p.Done)
	if p.Total > 0 {
		text += " of " + count(p.Total)
	}
	text += " " + p.Unit
	if p.Share > 0 {
		text = Share(p) + ", " + text
	}
	return text
}

func rate(p *api.Progress) string {
	switch {
	case p.Rate <= 0:
		return ""
	case p.Rate < 1:
		return fmt.Sprintf(", %.3g s each", 1/p.Rate)
	}
	return fmt.Sprintf(", %.3g a second", p.Rate)
}

func doubt(p *api.Progress) string {
	if p.Doubt == "" {
		return ""
	}
	return " (not relied on: " + p.Doubt + ")"
}

// startText returns when a waiting task is expected to start, or "" if unknown.
func startText(w *api.Why) string {
	if w.Start == nil {
		return ""
	}
	from := max(0, w.Start.Earliest.Sub(w.Now))
	if w.Start.Latest.IsZero() {
		return fmt.Sprintf("expected start: in %s or later\n", cli.Age(from))
	}
	to := max(0, w.Start.Latest.Sub(w.Now))
	switch {
	case to < time.Second:
		return "expected start: now\n"
	case cli.Age(from) == cli.Age(to):
		return fmt.Sprintf("expected start: in %s\n", cli.Age(to))
	}
	return fmt.Sprintf("expected start: in %s to %s\n", cli.Age(from), cli.Age(to))
}
