package progress

import "strings"

// table reads the table of a program that prints a header and then a row per epoch or per
// number of steps, as fastai and LAMMPS do.
type table struct {
	columns int // 0 until a header is seen
	unit    string
}

// counted maps the names of first columns that count to their units.
var counted = map[string]string{"epoch": EpochsU, "step": Steps, "iter": Steps, "iteration": Steps}

// read reads a header or a row.
func (t *table) read(line string) (mark, bool) {
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '|' })
	if len(fields) < 3 {
		t.columns = 0
		return mark{}, false
	}
	if unit := counted[fields[0]]; unit != "" && !strings.ContainsAny(line, "0123456789:=,/") {
		t.columns, t.unit = len(fields), unit
		return mark{}, false
	}
	if t.columns != len(fields) {
		return mark{}, false
	}
	n := number(fields[0])
	if n != float64(int64(n)) || strings.ContainsAny(fields[0], "kmgb.") {
		return mark{}, false
	}
	for _, f := range fields[1:] {
		if strings.Trim(f, "0123456789.:+-e") != "" && f != "none" && f != "nan" {
			return mark{}, false
		}
	}
	m := newMark(Table, 1)
	m.name, m.unit, m.scope, m.step = "table", t.unit, scopeRun, n
	if t.unit == EpochsU && n >= 0 {
		m.step = n + 1 // rows count from 0 and close their epoch
	}
	return m, n >= 0
}

// row reports whether a line may be a row of the table.
func (t *table) row(text []byte) bool {
	for _, b := range text {
		if b != ' ' && b != '|' {
			return t.columns > 0 && b >= '0' && b <= '9'
		}
	}
	return false
}

// header reports whether a line without a number may begin a table.
func header(text []byte) bool {
	s := strings.TrimLeft(string(text[:min(len(text), 24)]), " |")
	for name := range counted {
		if strings.HasPrefix(s, name+" ") {
			return true
		}
	}
	return false
}
