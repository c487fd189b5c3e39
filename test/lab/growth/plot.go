package main

import (
	"fmt"
	"math"
	"strings"
)

// The plot's size and margins in pixels.
const (
	width, height            = 720, 400
	left, right, top, bottom = 70, 90, 50, 60
)

var colours = []string{"#0072b2", "#d55e00"} // also distinguishable for colour-blind people

// axes turn values into pixels.
type axes struct{ first, last, most float64 }

func (a axes) x(tasks int) float64 {
	return left + (width-left-right)*math.Log(float64(tasks)/a.first)/math.Log(a.last/a.first)
}

func (a axes) y(ns float64) float64 { return height - bottom - (height-top-bottom)*ns/a.most }

// step is the distance of two marks on the vertical axis, in nanoseconds.
const step = 200

// plot draws time per event over tasks as SVG: medians, with whiskers from the
// least to the most.
func plot(all []*series) string {
	points := all[0].points
	a := axes{float64(points[0].tasks), float64(points[len(points)-1].tasks), 0}
	for _, s := range all {
		for i := range s.points {
			_, _, most := s.points[i].spread(event)
			_, bound, _ := s.points[0].spread(event)
			a.most = max(a.most, most, bound*logarithmic(s.points[0].tasks, s.points[i].tasks))
		}
	}
	a.most = step * math.Ceil(a.most/step)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	text(&b, left, 26, "start", "#222", `CPU time per event of a replay on 64 GPUs, one core (median, least to most)`)
	a.grid(&b, points)
	for i, s := range all {
		a.line(&b, s, colours[i%len(colours)])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// logarithmic returns the factor by which time per event grows from first to n tasks if it
// grows with the logarithm.
func logarithmic(first, n int) float64 { return math.Log(float64(n)) / math.Log(float64(first)) }

func text(b *strings.Builder, x, y float64, anchor, colour, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, s)
}

func stroke(b *strings.Builder, x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
}

func (a axes) grid(b *strings.Builder, points []point) {
	for ns := 0.0; ns <= a.most; ns += step {
		stroke(b, left, a.y(ns), width-right, a.y(ns), `stroke="#ddd"`)
		text(b, left-8, a.y(ns)+4, "end", "#444", fmt.Sprintf("%.0f ns", ns))
	}
	for _, p := range points {
		text(b, a.x(p.tasks), height-bottom+20, "middle", "#444", thousands(p.tasks))
	}
	text(b, (left+width-right)/2, height-bottom+44, "middle", "#222", "tasks in the trace; dashed: logarithmic growth from 1,000 on")
}

// line draws a series, and as a dashed line logarithmic growth from its first
// point.
func (a axes) line(b *strings.Builder, s *series, colour string) {
	var path, bound []string
	_, first, _ := s.points[0].spread(event)
	for i := range s.points {
		p := &s.points[i]
		x := a.x(p.tasks)
		least, median, most := p.spread(event)
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, a.y(median)))
		bound = append(bound, fmt.Sprintf("%.1f,%.1f", x, a.y(first*logarithmic(s.points[0].tasks, p.tasks))))
		stroke(b, x, a.y(least), x, a.y(most), fmt.Sprintf(`stroke="%s"`, colour))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, a.y(median), colour)
		if i == len(s.points)-1 {
			text(b, x+10, a.y(median)+4, "start", colour, s.name)
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-dasharray="4 4" opacity="0.6"/>`+"\n", strings.Join(bound, " "), colour)
}
