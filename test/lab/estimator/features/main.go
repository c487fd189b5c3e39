// Features writes the input of estimator/training/residual.py: for every measured
// training of the public data its features, its simulated memory and its measured
// memory. The rows stay outside of the repository.
//
// With -figures it writes the input of estimator/training/figures.py: only the
// few figures that a user may know of a training, and its measured memory.
//
//	bin/lab/features -data ../shared/data -out /tmp/features.csv
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/figures"
	"carma/estimator/networks/named"
	"carma/estimator/step"
	"carma/test/lab/estimator/residual"
)

var (
	header    = []string{"set", "environment", "family", "group", "row", "truncated", "measured", "point", "tracked", "capacity"}
	fewHeader = []string{"set", "environment", "family", "group", "truncated", "measured", "context", "capacity", "scale", "tracked"}
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the public data")
	out := flag.String("out", "features.csv", "file to write")
	few := flag.Bool("figures", false, "write the few figures of each training instead of its features")
	flag.Parse()
	if err := run(*data, *out, *few); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(data, out string, few bool) (err error) {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := csv.NewWriter(bufio.NewWriter(f))
	defer w.Flush()
	columns, line := append(header, residual.Names()...), describe
	if few {
		columns, line = append(fewHeader, figures.Names()...), describeFew
	}
	if err := w.Write(columns); err != nil {
		return err
	}
	for _, file := range []string{"estimates.csv", "gpumemnet/cnn.csv", "gpumemnet/mlp.csv", "gpumemnet/timm_faketensor.csv", "public/xmem.csv"} {
		if err := add(w, filepath.Join(data, file), line); err != nil {
			return err
		}
	}
	if few {
		return nil
	}
	return add(w, own, line)
}

// own is the path of this project's measurements, from the repository's root.
const own = "docs/hardware/h100-2026-11-22/estimates.csv"

func add(w *csv.Writer, path string, line func(evaluate.Case) ([]string, error)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	cases, _, err := evaluate.Read(f, func(model string, with models.Overrides) (*models.Config, error) {
		return named.Build(model, with)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range cases {
		fields, err := line(c)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, c.Row, err)
		}
		if fields == nil {
			continue
		}
		if err := w.Write(fields); err != nil {
			return err
		}
	}
	return nil
}

func describe(c evaluate.Case) ([]string, error) {
	env, err := environment.Named(c.Environment)
	if err != nil {
		return nil, err
	}
	family, features, point := models.Family(""), make([]float32, len(residual.Names())), int64(0)
	if c.Config != nil {
		p, err := step.Prepare(c.Config)
		if err != nil {
			return nil, err
		}
		s, err := residual.Simulate(p, &env.Environment)
		if err != nil {
			return nil, err
		}
		family, features, point = c.Config.Family, residual.Features(c.Config, s, trackedIn(c)), s.Point.Total()
	}
	fields := []string{
		c.Set, c.Environment, string(family), c.Group, strconv.Itoa(c.Row), strconv.FormatBool(c.Truncated),
		strconv.FormatInt(c.Measured, 10), strconv.FormatInt(point, 10), strconv.FormatInt(c.FakeTensor, 10), strconv.FormatInt(env.Capacity, 10),
	}
	for _, x := range features {
		fields = append(fields, strconv.FormatFloat(float64(x), 'g', 9, 32))
	}
	return fields, nil
}

// describeFew returns the row of a training, or nil if its family is not learned.
func describeFew(c evaluate.Case) ([]string, error) {
	if c.Config == nil {
		return nil, nil
	}
	f := figures.Of(c.Config)
	if errors.Is(f.Check(), figures.ErrFamily) {
		return nil, nil
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	env, err := environment.Named(c.Environment)
	if err != nil {
		return nil, err
	}
	fields := []string{
		c.Set, c.Environment, string(f.Family), c.Group, strconv.FormatBool(c.Truncated), strconv.FormatInt(c.Measured, 10),
		strconv.FormatInt(figures.Context(f.Family, &env.Environment), 10), strconv.FormatInt(env.Capacity, 10),
		strconv.FormatInt(figures.Scale(f), 10), strconv.FormatInt(trackedIn(c), 10),
	}
	for _, x := range figures.Features(f) {
		fields = append(fields, strconv.FormatFloat(float64(x), 'g', 9, 32))
	}
	return fields, nil
}

// trackedIn returns the tracker's peak in bytes, if that is an input for this set; else 0.
func trackedIn(c evaluate.Case) int64 {
	if c.Set == evaluate.Timm {
		return c.FakeTensor
	}
	return 0
}
