// Package pairs reads pairs of tasks that were measured alone and together on one GPU,
// and scores the predictions of an interference model for them. The fit of the model's
// coefficients and carma replay --pairs share it.
package pairs

import (
	"fmt"
	"io"

	"carma/mapper/sim"
)

// Task is one task of a pair.
type Task struct {
	ID     string // of its solo profile
	Family string // model and data set
	Load   sim.Load
}

// Pair is two tasks measured together.
type Pair struct {
	Line int // in its file
	A, B Task
	// SpeedA and SpeedB are the speeds of the tasks while both run, relative to the speed
	// alone.
	SpeedA, SpeedB float64
	// WholeRun is set if the speeds are over each task's whole run, during which one task
	// may have continued alone.
	WholeRun bool
}

// Loads returns the loads of the two tasks.
func (p Pair) Loads() []sim.Load { return []sim.Load{p.A.Load, p.B.Load} }

// Skipped is a line that could not be used, with the reason.
type Skipped struct {
	Line   int
	A, B   string // solo profiles
	Reason string
}

// Measured is the content of a file of pairs.
type Measured struct {
	Pairs   []Pair
	Skipped []Skipped
}

// Columns of a file of pairs. Speeds are read from the overlap columns or, if those are
// missing or empty, from the other two.
const (
	profileA, profileB = "solo_profile_a", "solo_profile_b"
	overlapA, overlapB = "overlap_speed_a", "overlap_speed_b"
	speedA, speedB     = "speed_a", "speed_b"
)

// Read reads pairs from CSV with the columns solo_profile_a and _b, which name profiles,
// and overlap_speed_a and _b or speed_a and _b, in any order. It ignores other columns.
// Errors begin with name. It skips a pair with an unknown profile or speed; a pair of
// tasks on two GPUs is an error.
func Read(name string, r io.Reader, profiles map[string]Profile) (Measured, error) {
	t, err := readTable(name, r)
	if err != nil {
		return Measured{}, err
	}
	if err := t.need(profileA, profileB); err != nil {
		return Measured{}, err
	}
	if !(t.has(overlapA) && t.has(overlapB)) && !(t.has(speedA) && t.has(speedB)) {
		return Measured{}, t.errorf(t.header, "no columns %s and %s, nor %s and %s", overlapA, overlapB, speedA, speedB)
	}
	var m Measured
	for _, row := range t.rows {
		pair, reason, err := readPair(t, row, profiles)
		switch {
		case err != nil:
			return Measured{}, err
		case reason != "":
			m.Skipped = append(m.Skipped, Skipped{row.line, t.text(row, profileA), t.text(row, profileB), reason})
		default:
			m.Pairs = append(m.Pairs, pair)
		}
	}
	if len(t.rows) == 0 {
		return Measured{}, t.errorf(t.header, "no pairs after the header")
	}
	return m, nil
}

// readPair returns the reason if the pair must be skipped.
func readPair(t *table, row row, profiles map[string]Profile) (p Pair, skip string, err error) {
	p.Line = row.line
	var skipA, skipB string
	if p.A, skipA, err = readTask(t, row, profileA, profiles); err != nil {
		return p, "", err
	}
	if p.B, skipB, err = readTask(t, row, profileB, profiles); err != nil {
		return p, "", err
	}
	known, err := readSpeeds(t, row, &p)
	switch {
	case err != nil:
		return p, "", err
	case skipA != "":
		return p, skipA, nil
	case skipB != "":
		return p, skipB, nil
	case !known:
		return p, "no speeds", nil
	}
	return p, "", nil
}

func readTask(t *table, row row, column string, profiles map[string]Profile) (task Task, skip string, err error) {
	id := t.text(row, column)
	p, ok := profiles[id]
	switch {
	case id == "":
		return task, "", t.errorf(row.line, "%s: empty; the task's solo profile stands there", column)
	case !ok:
		return task, "unknown profile " + id, nil
	case p.GPUs > 1:
		return task, "", t.errorf(row.line, "%s: %s ran on %d GPUs%s; a pair is of two tasks on one", column, id, p.GPUs, p.where())
	case !p.Measured:
		return task, fmt.Sprintf("activity of %s was not measured", id), nil
	}
	return p.Task, "", nil
}

// readSpeeds reports whether the row has both speeds.
func readSpeeds(t *table, row row, p *Pair) (bool, error) {
	for _, columns := range [][2]string{{overlapA, overlapB}, {speedA, speedB}} {
		a, okA, err := t.number(row, columns[0])
		if err != nil {
			return false, err
		}
		b, okB, err := t.number(row, columns[1])
		if err != nil {
			return false, err
		}
		if okA && okB {
			p.SpeedA, p.SpeedB, p.WholeRun = a, b, columns[0] == speedA
			return true, nil
		}
	}
	return false, nil
}
