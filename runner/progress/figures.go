package progress

// figures contains the printed throughput, and a count computed from it for tasks that
// print nothing else.
type figures struct {
	last  float64 // per second, or 0 if none was seen
	per   string
	at    float64
	count float64
}

// take stores a figure and increases the count by it.
func (f *figures) take(m mark, at float64) {
	if m.figure <= 0 || m.aside {
		return
	}
	if f.per == m.per && at > f.at {
		f.count += m.figure * (at - f.at)
	}
	f.last, f.per, f.at = m.figure, m.per, at
}
