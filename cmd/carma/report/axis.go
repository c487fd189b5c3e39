package report

import (
	"fmt"
	"math"
	"time"
)

// timeAxis is an axis of seconds since the start of a replay.
type timeAxis struct {
	end   float64 // s
	ticks []tick
}

// tick is a labelled instant on an axis.
type tick struct {
	at    float64 // s
	label string
}

// timeSteps lists usual distances of ticks, in seconds.
var timeSteps = []float64{
	1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600,
	50 * 3600, 100 * 3600, 200 * 3600, 500 * 3600, 1000 * 3600, 2000 * 3600, 5000 * 3600, 10000 * 3600,
}

// newTimeAxis returns an axis with at most this number of ticks, in hours unless the
// replay is shorter.
func newTimeAxis(length time.Duration, most int) timeAxis {
	a := timeAxis{end: math.Max(1, length.Seconds())}
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if a.end/s <= float64(most) {
			step = s
			break
		}
	}
	for a.end/step > float64(most) { // years
		step *= 2
	}
	unit, name := 3600.0, "h"
	switch {
	case a.end < 180:
		unit, name = 1, "s"
	case a.end < 7200:
		unit, name = 60, "min"
	}
	for i := 0; float64(i)*step <= a.end; i++ {
		t := tick{at: float64(i) * step, label: "0"}
		if i > 0 {
			t.label = fmt.Sprintf("%.4g %s", t.at/unit, name)
		}
		a.ticks = append(a.ticks, t)
	}
	return a
}
