// Report scores all estimators on the public data and writes the tables of
// docs/estimators.md.
//
//	bin/lab/report -data ../shared/data -doc docs/estimators.md
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/named"
	"carma/estimator/onnx"
	"carma/estimator/residual"
	"carma/estimator/rivals"
)

// The tables are between these two lines of the document.
const (
	begin = "<!-- scores: written by make estimator-report -->\n"
	end   = "<!-- end of scores -->\n"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the public data")
	doc := flag.String("doc", "docs/estimators.md", "document to write the tables into")
	card := flag.String("card", "estimator/residual/card.json", "what the training of the correction wrote")
	fewCard := flag.String("few", "estimator/figures/card.json", "what the training of the model of a few figures wrote")
	flag.Parse()
	if err := run(*data, *doc, *card, *fewCard); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(data, doc, card, fewCard string) error {
	if s := onnx.Status(); !s.On {
		return errors.New("the report needs ONNX Runtime: " + s.Why)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has not the lines %q and %q", doc, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var out bytes.Buffer
	if err := heldOut(&out, card); err != nil {
		return err
	}
	if err := few(&out, fewCard); err != nil {
		return err
	}
	if err := shipped(&out, data); err != nil {
		return err
	}
	if err := together(&out, "estimator/evaluate/testdata/xmem.csv"); err != nil {
		return err
	}
	return os.WriteFile(doc, slices.Concat(before, []byte(begin), out.Bytes(), []byte(end), after), 0o666)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// shipped writes the errors of the shipped estimators on these files.
func shipped(out *bytes.Buffer, data string) error {
	fmt.Fprint(out, "\n### As shipped, and the others\n\n`carma estimate --evaluate FILE`. For `carma`, `gpumemnet` and `gpumemnet-transformer` these are rows that they were fitted to.\n")
	all := rivals.All(&methods.Carma{Corrector: residual.NewModel()})
	for _, file := range []string{"estimates.csv", "gpumemnet/cnn.csv", "gpumemnet/mlp.csv", "gpumemnet/timm_faketensor.csv", "public/xmem.csv"} {
		f, err := os.Open(filepath.Join(data, file))
		if err != nil {
			return err
		}
		cases, _, err := evaluate.Read(f, named.Build)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		environments, _, err := evaluate.Environments(cases, all, environment.Default, 0.95)
		if err != nil {
			return err
		}
		for _, env := range environments {
			fmt.Fprintf(out, "\n`%s`, measured in %s: %d trainings\n\n| estimator | rows | mean | median | under | bound: under | overhead |\n|---|---|---|---|---|---|---|\n",
				filepath.Base(file), cmp.Or(env.Environment, "an environment not stated"), env.Trainings)
			scores := slices.Insert(env.Scores, 1, env.Seen...) // behind carma's own
			for _, s := range append(scores, env.Published...) {
				if s.Rows > 0 {
					fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s |\n", s.Method, s.Rows, percent(s.Mean), percent(s.Median), percent(s.Under), percent(s.BoundUnder), percent(s.Overhead))
				}
			}
		}
	}
	return nil
}
