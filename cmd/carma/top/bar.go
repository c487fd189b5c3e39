package top

import (
	"math"
	"strconv"
	"strings"

	"carma/runner/api"
)

// bar shows a GPU's memory in a number of cells: for each task its number, the memory
// that it uses and the memory that it has allocated beyond that; then memory of other
// processes, then free memory. A number that does not fit completely is left out.
func (g *glyphs) bar(v *api.GPU, width int) string {
	if width < 1 {
		return ""
	}
	whole := float64(max(v.Capacity, 1))
	taken := float64(v.Foreign)
	for _, r := range v.Tasks {
		taken += float64(max(r.Grant, r.Used))
	}
	whole = math.Max(whole, taken)
	at := func(bytes float64) int { return int(math.Round(bytes / whole * float64(width))) }
	var b strings.Builder
	sum, from := 0.0, 0
	for _, r := range v.Tasks {
		used, to := at(sum+float64(r.Used)), 0
		sum += float64(max(r.Grant, r.Used))
		to = at(sum)
		b.WriteString(g.part(strconv.FormatInt(r.Task, 10), hues[int(r.Task)%len(hues)], used-from, to-from))
		from = to
	}
	to := at(taken)
	b.WriteString(bad.of(strings.Repeat(g.foreign, to-from)))
	b.WriteString(dim.of(strings.Repeat(g.free, width-to)))
	return b.String()
}

// part draws a task's part of the bar. It has all cells, and used of them are in use.
func (g *glyphs) part(number string, hue sgr, used, all int) string {
	used = min(max(used, 0), all)
	cells := strings.Repeat(g.used, used) + strings.Repeat(g.booked, all-used)
	if all <= len(number) {
		return hue.of(cells)
	}
	return ("1;" + hue).of(number) + hue.of(string([]rune(cells)[len(number):]))
}

// meter shows the used part of a whole, with a mark at another amount, such as the
// estimate.
func (g *glyphs) meter(used, mark, whole int64, width int) string {
	if whole <= 0 || width < 3 {
		return ""
	}
	at := func(bytes int64) int {
		return min(width, int(math.Round(float64(bytes)/float64(whole)*float64(width))))
	}
	cells := []rune(strings.Repeat(g.used, at(used)) + strings.Repeat(g.free, width-at(used)))
	if mark > 0 {
		cells[min(at(mark), width-1)] = '|'
	}
	return string(cells)
}

// curve shows memory over time in a number of cells. whole is the memory at full height.
func (g *glyphs) curve(points []api.CurvePoint, until int64, whole int64, width int) string {
	if len(points) == 0 || whole <= 0 || width < 1 {
		return ""
	}
	first := points[0].At.Unix()
	span := max(1, until-first)
	cells := make([]rune, width)
	next := 0
	for i := range cells {
		end := first + span*int64(i+1)/int64(width)
		high := points[max(0, next-1)].Used
		for ; next < len(points) && (points[next].At.Unix() < end || i == width-1); next++ {
			high = max(high, points[next].Used)
		}
		step := int(math.Ceil(float64(high) / float64(whole) * float64(len(g.steps)-1)))
		cells[i] = g.steps[min(max(step, 0), len(g.steps)-1)]
	}
	return string(cells)
}
