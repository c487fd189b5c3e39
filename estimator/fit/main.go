// Fit writes what estimator/training/residual.py learns from: for every
// measured training of the public data its features, its simulated and its
// measured memory. The rows stay outside of the repository.
//
//	go run ./estimator/fit -data ../shared/data -out /tmp/features.csv
package main

import (
	"bufio"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"carma/configs/models"
	"carma/configs/models/zoo"
	"carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/residual"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the public data")
	out := flag.String("out", "features.csv", "file to write")
	flag.Parse()
	if err := run(*data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(data, out string) (err error) {
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
	header := []string{"set", "environment", "family", "group", "row", "truncated", "measured", "point", "tracked"}
	if err := w.Write(append(header, residual.Names()...)); err != nil {
		return err
	}
	for _, file := range []string{"estimates.csv", "gpumemnet/cnn.csv", "gpumemnet/mlp.csv", "gpumemnet/timm_faketensor.csv"} {
		if err := add(w, filepath.Join(data, file)); err != nil {
			return err
		}
	}
	return nil
}

func add(w *csv.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	cases, _, err := evaluate.Read(f, func(model string, with models.Overrides) (*models.Config, error) {
		return zoo.Build(model, with)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range cases {
		fields, err := describe(c)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, c.Row, err)
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
		s, err := residual.Simulate(c.Config, &env.Environment)
		if err != nil {
			return nil, err
		}
		family, features, point = c.Config.Family, residual.Features(c.Config, s, trackedIn(c)), s.Point.Total()
	}
	fields := []string{
		c.Set, c.Environment, string(family), c.Group, strconv.Itoa(c.Row), strconv.FormatBool(c.Truncated),
		strconv.FormatInt(c.Measured, 10), strconv.FormatInt(point, 10), strconv.FormatInt(c.FakeTensor, 10),
	}
	for _, x := range features {
		fields = append(fields, strconv.FormatFloat(float64(x), 'g', 9, 32))
	}
	return fields, nil
}

// trackedIn is the tracker's peak where it is an input of the set.
func trackedIn(c evaluate.Case) int64 {
	if c.Set == evaluate.Timm {
		return c.FakeTensor
	}
	return 0
}
