package evaluate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"carma/configs/models"
)

// Case is one measured training.
type Case struct {
	// Set is the kind of file: real, cnn, mlp, timm or xmem.
	Set string
	// Name is the row's name in messages. Rows of one Group, such as a model at several
	// batch sizes, must not be split between fitting and testing.
	Name, Group string
	// Row is the row's line in the file.
	Row int
	// Config is the model, or nil if unknown.
	Config *models.Config
	// Batch is the batch size in the file.
	Batch int
	// FakeTensor is the peak of a FakeTensor tracker in bytes, or 0.
	FakeTensor int64
	// Environment is the environment of the measurement, or empty if not stated.
	Environment string
	// Measured is the measured peak in bytes, as nvidia-smi prints it.
	Measured int64
	// Truncated is set if the run ended out of memory, so that Measured is not its peak.
	Truncated bool
	// Published contains the file's estimates in bytes, by estimator.
	Published map[string]int64
}

// Sets of cases.
const (
	Real = "real"
	CNN  = "cnn"
	MLP  = "mlp"
	Timm = "timm"
)

// maxRows is the largest number of rows in a file.
const maxRows = 1_000_000

// Lookup builds a model of the catalogue.
type Lookup func(model string, with models.Overrides) (*models.Config, error)

// format is one kind of file.
type format struct {
	set     string
	columns []string // the columns that distinguish it from the other formats
	read    func(row, Lookup) (Case, bool, error)
}

var formats = []format{
	{Xmem, []string{"gpu", "model", "optimizer", "batch_size", "ground_bytes", "real_oom"}, xmemCase},
	{Timm, []string{"model", "batch_size", "actual_mib", "faketensor_peak_mib"}, timmCase},
	{Real, []string{"model", "dataset", "batch_size", "gpus", "actual_mib"}, realCase},
	{CNN, []string{"input_channels", "batch_size", "input_size", "layers", "max_gpu_mem_mib", "status"}, cnnCase},
	{MLP, []string{"input_size", "batch_size", "layers", "max_gpu_mem_mib"}, mlpCase},
}

// Read reads a file in one of the formats, which it recognizes by the columns. skipped
// counts rows without a measurement or without layers, and repeated measurements of a
// real model, the last of which counts. An error names the line.
func Read(r io.Reader, look Lookup) (cases []Case, skipped int, err error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	in.Comment = '#'
	header, err := in.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("line 1: no header: %w", err)
	}
	columns := map[string]int{}
	for i, name := range header {
		columns[strings.TrimPrefix(name, "\ufeff")] = i
	}
	f, ok := formatOf(columns)
	if !ok {
		return nil, 0, fmt.Errorf("line 1: columns %s are those of no known format: estimates.csv, cnn.csv, mlp.csv, timm_faketensor.csv or xmem.csv", strings.Join(header[:min(len(header), 6)], ","))
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			kept := once(cases)
			return kept, skipped + len(cases) - len(kept), nil
		}
		if err != nil {
			return nil, 0, err
		}
		line, _ := in.FieldPos(0)
		if len(cases)+skipped >= maxRows {
			return nil, 0, fmt.Errorf("line %d: more than %d rows", line, maxRows)
		}
		c, ok, err := f.read(row{columns, fields, line}, look)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
		if !ok {
			skipped++
			continue
		}
		c.Set, c.Row = f.set, line
		cases = append(cases, c)
	}
}

// once keeps only the last of several rows for the same measurement of a real model in the
// same environment, because the tables repeat measurements.
func once(cases []Case) []Case {
	type key struct {
		group, environment string
		measured           int64
	}
	last := map[key]int{}
	for i, c := range cases {
		last[key{c.Group, c.Environment, c.Measured}] = i
	}
	kept := cases[:0:0]
	for i, c := range cases {
		if c.Set != Real || last[key{c.Group, c.Environment, c.Measured}] == i {
			kept = append(kept, c)
		}
	}
	return kept
}

func formatOf(columns map[string]int) (format, bool) {
	for _, f := range formats {
		if !slices.ContainsFunc(f.columns, func(c string) bool { _, ok := columns[c]; return !ok }) {
			return f, true
		}
	}
	return format{}, false
}

// row is one line of a file.
type row struct {
	columns map[string]int
	fields  []string
	line    int
}

// text returns a field, or empty if the column is missing.
func (r row) text(column string) string {
	if i, ok := r.columns[column]; ok && i < len(r.fields) {
		return strings.Clone(strings.TrimSpace(r.fields[i]))
	}
	return ""
}

// integer returns a field, which must be an integer from low to high.
func (r row) integer(column string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s %q is not a number from %d to %d", column, r.text(column), low, high)
	}
	return n, nil
}

// mib converts a field from MiB to bytes. It returns 0 for an empty field.
func (r row) mib(column string) (int64, error) {
	if r.text(column) == "" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil || !(x >= 0) || x > 1<<30 {
		return 0, fmt.Errorf("%s %q is not a number of MiB", column, r.text(column))
	}
	return int64(x * (1 << 20)), nil
}
