// Command pack makes package timm's file of layer tables from the output of
// estimator/training/trace_timm.py:
//
//	go run ./estimator/networks/timm/pack "timm 1.0, torch 2.15" <traces.jsonl >estimator/networks/timm/tables.bin
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"carma/configs/models"
	"carma/estimator/networks/timm"
)

// trace is one line of the input: a traced model.
type trace struct {
	timm.Table
	Error string `json:"error"`
	// Params is the number of elements of all parameters.
	Params int64 `json:"params"`
	// Unused lists the sizes of parameters that the forward pass does not read.
	Unused []int64 `json:"unused"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack PROVENANCE <traces.jsonl >tables.bin")
		os.Exit(2)
	}
	if err := pack(os.Stdout, os.Stdin, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(w io.Writer, r io.Reader, provenance string) error {
	d := json.NewDecoder(bufio.NewReader(r))
	var all []timm.Table
	for {
		var t trace
		if err := d.Decode(&t); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("trace %d: %w", len(all), err)
		}
		if t.Error != "" {
			fmt.Fprintf(os.Stderr, "%s left out: %s\n", t.Name, t.Error)
			continue
		}
		table, err := t.finish()
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		all = append(all, table)
	}
	return timm.Write(w, provenance, all)
}

// finish sets Keeps of every layer, adds the unused parameters, and checks the
// total.
func (t *trace) finish() (timm.Table, error) {
	var params int64
	for i := range t.Layers {
		l := &t.Layers[i]
		if l.Keeps == nil {
			l.Keeps = &models.Keeps{}
		}
		for _, p := range l.Params {
			params += p
		}
	}
	if len(t.Unused) > 0 {
		t.Layers = append(t.Layers, models.Layer{
			Type: models.View, Inputs: []int{-1}, Out: t.Input,
			Params: t.Unused, Frozen: true, Keeps: &models.Keeps{},
		})
		for _, p := range t.Unused {
			params += p
		}
	}
	if params != t.Params {
		return timm.Table{}, fmt.Errorf("%d parameters in the layers, %d in the model", params, t.Params)
	}
	return t.Table, nil
}
