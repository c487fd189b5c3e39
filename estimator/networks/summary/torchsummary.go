package summary

import (
	"math"
	"strconv"
	"strings"

	"carma/configs/models"
)

// readTorchsummary reads the table of torchsummary or pytorch-model-summary, from
// its head on:
//
//	Layer (type)               Output Shape         Param #
//	    Conv2d-1           [-1, 32, 26, 26]             320
func readTorchsummary(lines []string, head int) (*models.Config, error) {
	a := start(models.FromTorchsummary)
	rows, batches, err := summaryRows(lines, head)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &models.Error{Line: head + 1, What: "no layer after the head of the table; the summary is cut off"}
	}
	batch := commonest(batches)
	if batch > 0 && batch <= models.MaxBatch {
		a.c.Train.Batch = int(batch)
	} else {
		batch = -1
		a.warn("the batch is not in the summary: taken as 1; say it with --batch")
	}
	a.size(lines[head:], max(1, batch))
	for i := range rows {
		rows[i].perSample(batch)
		a.add(&rows[i])
	}
	a.warn("the summary does not tell whether activations are in place: they are assumed not to be")
	a.check(lines[head:], head)
	return a.done()
}

// summaryRows reads the rows, and the first dimension of each.
func summaryRows(lines []string, head int) (rows []row, batches []int64, err error) {
	rules := 0
	for i := head + 1; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "Total params") || strings.HasPrefix(line, "====") && rules > 0 {
			break
		}
		if line == "" || strings.HasPrefix(line, "====") || strings.HasPrefix(line, "----") {
			if strings.HasPrefix(line, "====") {
				rules++
			}
			continue
		}
		name, rest, ok := strings.Cut(line, " ")
		shape, numbers, closed := cutShape(strings.TrimSpace(rest))
		class, _, numbered := cutLast(name, "-")
		params := strings.Fields(numbers)
		if !ok || !closed || !numbered || len(params) == 0 {
			return nil, nil, &models.Error{Line: i + 1, What: "not a row of the table: " + models.Short(line) + "; it has a layer, its output shape and its parameters"}
		}
		n, fine := count(params[0])
		dims, good := dimsOf(shape)
		if !fine || !good {
			return nil, nil, &models.Error{Line: i + 1, What: "a shape or a number that cannot be in " + models.Short(line)}
		}
		r := row{name: name, class: class, out: dims, params: n, frozen: len(params) > 1 && params[1] == "0" && n > 0}
		rows = append(rows, r)
		if len(dims) > 0 {
			batches = append(batches, dims[0])
		}
	}
	return rows, batches, nil
}

// cutShape splits s after a list in brackets. Of a list of lists it returns the
// first.
func cutShape(s string) (shape, rest string, ok bool) {
	end := strings.LastIndexByte(s, ']')
	if !strings.HasPrefix(s, "[") || end < 0 {
		return "", "", false
	}
	shape, rest = s[1:end], s[end+1:]
	shape = strings.TrimLeft(shape, "[( ")
	if i := strings.IndexAny(shape, "])"); i >= 0 {
		shape = shape[:i]
	}
	return shape, rest, true
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i > 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// count reads a number like 1,234.
func count(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	return n, err == nil && n >= 0 && n <= models.MaxElements
}

// dimsOf reads "-1, 32, 26, 26"; -1 is an unknown batch.
func dimsOf(s string) ([]int64, bool) {
	var dims []int64
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < -1 || n > models.MaxElements || len(dims) > models.MaxDims {
			return nil, false
		}
		dims = append(dims, n)
	}
	return dims, true
}

// perSample removes the batch from the shapes of the output and the input. A row
// may have several entries per sample, as in detectors; their number stays.
func (r *row) perSample(batch int64) {
	out, whole := withoutBatch(r.out, batch)
	r.out, r.whole = out, whole
	if r.in != nil {
		r.in, _ = withoutBatch(r.in, batch)
	}
}

func withoutBatch(dims []int64, batch int64) (out []int64, whole bool) {
	if len(dims) == 0 {
		return []int64{}, false
	}
	switch first := dims[0]; {
	case first == batch || first == -1:
		out = dims[1:]
	case batch > 0 && first > 0 && first%batch == 0:
		out = append([]int64{first / batch}, dims[1:]...)
	default:
		out, whole = dims, true
	}
	return positive(out), whole
}

// positive copies a shape; an empty or unknown dimension becomes 1.
func positive(dims []int64) []int64 {
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = max(1, d)
	}
	return out
}

// commonest is the most frequent number; 0: there is none.
func commonest(numbers []int64) int64 {
	seen, best := map[int64]int{}, int64(0)
	for _, n := range numbers {
		if seen[n]++; seen[n] > seen[best] || seen[n] == seen[best] && n < best {
			best = n
		}
	}
	return best
}

// size reads "Input size (MB): 0.57" as the least and most elements of a sample.
func (a *assembly) size(lines []string, batch int64) {
	unit := float64(1 << 20)
	if a.c.Origin == models.FromTorchinfo {
		unit = 1e6
	}
	for _, line := range lines {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "Input size (MB):")
		if !ok {
			continue
		}
		mb, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || mb <= 0 || mb > 1e9 || math.IsNaN(mb) {
			return
		}
		each := unit / 4 / float64(batch)
		a.sample = []float64{math.Max(1, (mb-0.006)*each), (mb + 0.006) * each}
		return
	}
}

// check compares the sum of the parameters with the printed total.
func (a *assembly) check(lines []string, head int) {
	for _, line := range lines {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "Total params:")
		if !ok {
			continue
		}
		if total, ok := count(strings.TrimSpace(text)); ok && total != a.c.Params() {
			a.warn("the layers have %d parameters, the summary's total is %d", a.c.Params(), total)
		}
		return
	}
	a.warn("no total of the parameters after the table: the summary may be cut off")
}
