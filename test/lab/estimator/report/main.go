// Report scores all estimators on the public data. It writes the tables of
// test/lab/estimates.md, and of docs/estimators.md the few that users decide by.
//
//	bin/lab/report -data ../shared/data
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
	"carma/estimator/networks/named"
	"carma/estimator/onnx"
	"carma/estimator/rivals"
	"carma/test/lab/estimator/residual"
)

// The tables are between these two lines of a document.
const (
	begin = "<!-- scores: written by make estimator-report -->\n"
	end   = "<!-- end of scores -->\n"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the public data")
	doc := flag.String("doc", "docs/estimators.md", "document for the tables that users decide by")
	full := flag.String("full", "test/lab/estimates.md", "document for all tables")
	card := flag.String("card", "test/lab/estimator/residual/card.json", "what the training of the correction wrote")
	fewCard := flag.String("few", "estimator/figures/card.json", "what the training of the model of a few figures wrote")
	flag.Parse()
	if err := run(*data, *doc, *full, *card, *fewCard); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(data, doc, full, cardPath, fewPath string) error {
	if s := onnx.Status(); !s.On {
		return errors.New("the report needs ONNX Runtime: " + s.Why)
	}
	card, err := readHeld(cardPath)
	if err != nil {
		return err
	}
	fewCard, err := readFew(fewPath)
	if err != nil {
		return err
	}
	var all, short bytes.Buffer
	heldOut(&all, card)
	few(&all, fewCard)
	heldOutShort(&short, card)
	if err := together(&short, "estimator/evaluate/testdata/xmem.csv"); err != nil {
		return err
	}
	if err := shipped(&all, &short, data); err != nil {
		return err
	}
	fewShort(&short, fewCard)
	if err := replace(full, all.Bytes()); err != nil {
		return err
	}
	return replace(doc, short.Bytes())
}

// replace writes tables into the document at path.
func replace(path string, tables []byte) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has not the lines %q and %q", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(path, slices.Concat(before, []byte(begin), tables, []byte(end), after), 0o666)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// newestReal is the environment of the real models in estimates.csv that were measured last.
const newestReal = "a100-2025-09"

// shipped writes the errors of the shipped estimators on these files: all to out, and the
// effect of earlier runs for the newest real models to short.
func shipped(out, short *bytes.Buffer, data string) error {
	fmt.Fprint(out, "\n### As shipped, and the others\n\n`carma estimate --evaluate FILE`. For `carma`, `gpumemnet` and `gpumemnet-transformer` these are rows that they were fitted to.\n")
	all := rivals.All(&residual.Corrected{Corrector: residual.NewModel()})
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
			if file == "estimates.csv" && env.Environment == newestReal {
				seenShort(short, &env)
			}
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
