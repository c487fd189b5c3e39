package main

import (
	"bytes"
	"fmt"
	"os"

	"carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/named"
)

// together writes the scores on xMem's different runs on all GPUs, beside the published
// estimates.
func together(out *bytes.Buffer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	cases, _, err := evaluate.Read(f, named.Build)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	scores, _, err := evaluate.Run(cases, []methods.Method{&methods.Carma{}}, environment.Default, 0.95)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\n**As shipped, on xMem's runs** (RTX 3060, RTX 4060 and A100, each different run once; the bound was calibrated on them too), beside published estimates:\n\n"+
		"| estimator | runs | mean error | median | above the bound | overhead |\n|---|---|---|---|---|---|\n")
	for _, s := range append(scores, evaluate.Published(cases)...) {
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s |\n", s.Method, s.Rows, percent(s.Mean), percent(s.Median), percent(s.BoundUnder), percent(s.Overhead))
	}
	return nil
}
