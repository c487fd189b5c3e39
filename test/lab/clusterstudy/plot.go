package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot's size and margins in pixels.
const (
	width, height            = 720, 400
	left, right, top, bottom = 60, 30, 50, 60
)

var colours = []string{"#0072b2", "#d55e00", "#009e73"} // also distinguishable for colour-blind people

// marks are the labels of the time axis, in seconds.
var marks = []struct {
	seconds float64
	text    string
}{{60, "1 min"}, {600, "10 min"}, {3600, "1 h"}, {6 * 3600, "6 h"}, {24 * 3600, "1 d"}}

// steps is the number of points in a line: the picture shows no more.
const steps = 200

// plot draws the share of tasks over completion time, on a logarithmic axis from a minute
// on.
func plot(title string, all []series) string {
	longest := 3600.0
	for _, s := range all {
		longest = max(longest, s.jct[len(s.jct)-1])
	}
	x := func(s float64) float64 {
		return left + (width-left-right)*math.Log(max(s, 60)/60)/math.Log(longest/60)
	}
	y := func(share float64) float64 { return height - bottom - (height-top-bottom)*share }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	text(&b, left, 26, "start", "#222", title)
	for i := range 5 {
		share := float64(i) / 4
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", left, y(share), width-right, y(share))
		text(&b, left-8, y(share)+4, "end", "#444", fmt.Sprintf("%.0f %%", 100*share))
	}
	for _, m := range marks {
		if m.seconds <= longest {
			text(&b, x(m.seconds), height-bottom+20, "middle", "#444", m.text)
		}
	}
	text(&b, (left+width-right)/2, height-bottom+44, "middle", "#222", "time from submission to end (logarithmic); share of the tasks that have ended")
	for i, s := range all {
		var path []string
		for k := range steps + 1 {
			share := float64(k) / steps
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(s.jct[min(len(s.jct)-1, int(share*float64(len(s.jct))))]), y(share)))
		}
		colour := colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
		text(&b, left+14, top+16+20*float64(i), "start", colour, s.policy)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y float64, anchor, colour, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, html.EscapeString(s))
}
