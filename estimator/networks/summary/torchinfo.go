package summary

import (
	"strings"
	"unicode/utf8"

	"carma/configs/models"
)

// infoRow is a row of torchinfo's table with its depth in the tree.
type infoRow struct {
	row
	depth     int
	recursive bool
	line      int
}

// readTorchinfo reads torchinfo's table, from its head on. Rows without children
// are the layers. A block's own parameters go to its first layer.
func readTorchinfo(lines []string, head int) (*models.Config, error) {
	a := start(models.FromTorchinfo)
	rows, err := infoRows(lines, head)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &models.Error{Line: head + 1, What: "no layer after the head of the table; the summary is cut off"}
	}
	var batches []int64
	for i := range rows {
		if len(rows[i].out) > 0 {
			batches = append(batches, rows[i].out[0])
		}
	}
	batch := commonest(batches)
	if batch < 1 || batch > models.MaxBatch {
		batch = 1
		a.warn("the batch is not in the summary: taken as 1; say it with --batch")
	}
	a.c.Train.Batch = int(batch)
	a.size(lines[head:], batch)
	var own int64
	for i := range rows {
		r := &rows[i]
		a.detector = a.detector || detects(r.class)
		r.perSample(batch)
		if i+1 < len(rows) && rows[i+1].depth > r.depth {
			own = models.Plus(own, r.params)
			continue
		}
		if len(r.out) == 0 && r.params == 0 {
			continue // a list, or a module that was never called
		}
		before := len(a.c.Layers)
		if _, ok := typeOf(r.class); !ok && r.params == 0 {
			r.class = "Identity" // a module without parameters, of an unknown class
		}
		a.add(&r.row)
		if own > 0 && len(a.c.Layers) > before && len(a.c.Layers[before].Params) < models.MaxList {
			a.c.Layers[before].Params, own = append(a.c.Layers[before].Params, own), 0
		}
	}
	if len(a.c.Inputs) > 0 && len(rows[0].in) > 0 && a.c.Inputs[0].Bytes == 0 {
		a.c.Inputs[0].Shape = rows[0].in
	}
	a.check(lines[head:], head)
	return a.done()
}

// infoRows reads the rows by the columns in the head.
func infoRows(lines []string, head int) ([]infoRow, error) {
	columns := cells(strings.TrimSpace(lines[head]))
	var rows []infoRow
	for i := head + 1; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "====") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		if line == "" {
			continue
		}
		name := strings.TrimLeft(line, "│├└─| ")
		found := cells(name)
		if len(found) != len(columns) {
			return nil, &models.Error{Line: i + 1, What: "not a row of the table: " + models.Short(line) + "; its columns are not those of the head"}
		}
		r := infoRow{line: i + 1, depth: depthOf(line, name)}
		for at, cell := range found {
			if !r.set(columns[at], cell) {
				return nil, &models.Error{Line: i + 1, Field: columns[at], What: "cannot be " + models.Short(cell)}
			}
		}
		if r.recursive {
			r.params = 0
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// depthOf counts the strokes before a name: "├─" is 1, "│    └─" is 2.
func depthOf(line, name string) int {
	strokes := utf8.RuneCountInString(line[:len(line)-len(name)])
	if strokes == 0 {
		return 0
	}
	return (strokes-2)/5 + 1
}

// cells splits a row at double blanks.
func cells(line string) []string {
	var out []string
	for part := range strings.SplitSeq(line, "  ") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// set takes one cell.
func (r *infoRow) set(column, cell string) bool {
	none := cell == "--"
	ok := true
	switch {
	case strings.HasPrefix(column, "Layer (type"):
		cell, _, _ = cutLast(cell, ": ")
		class, name, _ := strings.Cut(cell, " (")
		r.class, r.name = class, strings.TrimSuffix(name, ")")
		if r.name == "" {
			r.name = class
		}
	case none:
	case column == "Output Shape", column == "Input Shape":
		shape, _, closed := cutShape(cell)
		dims, good := dimsOf(shape)
		if ok = closed && good; column == "Output Shape" {
			r.out = dims
		} else {
			r.in = dims
		}
	case column == "Param #":
		if cell == "(recursive)" {
			r.recursive = true
			return true
		}
		number, note, _ := strings.Cut(cell, " ")
		r.recursive = strings.Contains(note, "recursive")
		r.params, ok = count(strings.Trim(number, "()"))
	case column == "Kernel Shape":
		dims, good := dimsOf(strings.Trim(cell, "[]"))
		if ok = good; good && len(dims) < 4 {
			r.kernel = positive(dims)
		}
	case column == "Trainable":
		r.frozen = cell == "False"
	}
	return ok
}
