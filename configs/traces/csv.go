package traces

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"

	"carma/internal/suggest"
)

// csvNames maps additional column names to names of fields.
var csvNames = map[string]string{"arrival_s": "at", "task": "workload"}

// passedOver are ignored columns of the original's tables. Their values follow from the
// task.
var passedOver = []string{"model", "dataset", "batch_size", "epochs"}

func (p *parser) csv(content []byte) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff"))))
	r.FieldsPerRecord = -1 // counted here, for a better error message
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return p.errorf(1, "empty; the first line is arrival_s,workload")
	} else if err != nil {
		return p.csvSyntax(err)
	}
	columns, err := p.header(header)
	if err != nil {
		return err
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return p.csvSyntax(err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(columns) {
			return p.errorf(line, "%d values for %d columns", len(record), len(columns))
		}
		t := Task{Line: line}
		set := map[string]bool{}
		for i, column := range columns {
			if column == "" || strings.TrimSpace(record[i]) == "" {
				continue
			}
			at, _ := r.FieldPos(i)
			if err := p.set(&t, at, column, record[i]); err != nil {
				return err
			}
			set[column] = true
		}
		if err := p.add(t, set); err != nil {
			return err
		}
	}
}

// header returns the field of each column, or "" for an ignored column.
func (p *parser) header(names []string) ([]string, error) {
	var columns []string
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		column := name
		if other, ok := csvNames[name]; ok {
			column = other
		}
		known := append(fieldNames(), "arrival_s")
		switch {
		case slices.Contains(passedOver, name):
			column = ""
		case !slices.Contains(known, column):
			return nil, p.errorf(1, "unknown column %q; nearest: %s", name, suggest.Names(name, known, 1)[0])
		case slices.Contains(columns, column):
			return nil, p.errorf(1, "column %s a second time", name)
		}
		columns = append(columns, column)
	}
	if !slices.Contains(columns, "at") || !slices.Contains(columns, "workload") {
		return nil, p.errorf(1, "columns arrival_s and workload must be there")
	}
	return columns, nil
}

func (p *parser) csvSyntax(err error) error {
	var e *csv.ParseError
	if errors.As(err, &e) {
		return p.errorf(e.Line, "not CSV: %v", e.Err)
	}
	return p.errorf(1, "not CSV: %v", err)
}
