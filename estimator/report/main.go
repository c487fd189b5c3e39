// Report scores every estimator on the public data and writes the tables of
// docs/estimators.md.
//
//	go run ./estimator/report -data ../shared/data -doc docs/estimators.md
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
	"carma/estimator/onnx"
	"carma/estimator/residual"
	"carma/estimator/rivals"
)

// The tables stand between these lines of the document.
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
	if err := held(&out, card); err != nil {
		return err
	}
	if err := few(&out, fewCard); err != nil {
		return err
	}
	if err := shipped(&out, data); err != nil {
		return err
	}
	return os.WriteFile(doc, slices.Concat(before, []byte(begin), out.Bytes(), []byte(end), after), 0o666)
}

// figures are those of a set of rows that nothing was learned from; the
// bound is nil where they are too few.
type figures struct {
	Rows     int      `json:"rows"`
	Mean     float64  `json:"mean"`
	Median   float64  `json:"median"`
	Under    float64  `json:"under"`
	Bound    *float64 `json:"bound_under"`
	Overhead float64  `json:"bound_overhead"`
}

// held writes the figures of held-out folds.
func held(out *bytes.Buffer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var card struct {
		Folds int `json:"folds"`
		Sets  []struct {
			Environment string        `json:"environment"`
			Family      models.Family `json:"family"`
			Simulated   *figures      `json:"simulated"`
			Corrected   *figures      `json:"corrected"`
			Tracker     *figures      `json:"tracker"`
		} `json:"sets"`
	}
	if err := json.Unmarshal(text, &card); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Fprintf(out, "### Tested: rows that were not learned from\n\n%d folds; a network is in one fold at all its batch sizes. The bound of a fold is that of the others; the few real models are left out one by one.\n\n", card.Folds)
	fmt.Fprint(out, "| measured in | networks | `carma` | rows | mean | median | under | 95 % bound: under | overhead |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range card.Sets {
		for _, v := range []struct {
			what string
			f    *figures
		}{{"simulated only", s.Simulated}, {"with the correction", s.Corrected}, {"from the tracked peak", s.Tracker}} {
			if f := v.f; f != nil && f.Rows > 1 {
				bound, overhead := "-", "-" // too few for a bound of their own
				if f.Bound != nil {
					bound, overhead = percent(*f.Bound), percent(f.Overhead)
				}
				fmt.Fprintf(out, "| %s | %s | %s | %d | %s | %s | %s | %s | %s |\n", cmp.Or(s.Environment, "both real"), cmp.Or(string(s.Family), "all"), v.what,
					f.Rows, percent(f.Mean), percent(f.Median), percent(f.Under), bound, overhead)
			}
		}
	}
	return nil
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// shipped writes how what ships with carma does on the very files.
func shipped(out *bytes.Buffer, data string) error {
	fmt.Fprint(out, "\n### As shipped, and the others\n\n`carma estimate --evaluate FILE`. For `carma`, `gpumemnet` and `gpumemnet-transformer` these are rows that they were fitted to.\n")
	all := rivals.All(&methods.Carma{Corrector: residual.NewModel()})
	for _, file := range []string{"estimates.csv", "gpumemnet/cnn.csv", "gpumemnet/mlp.csv", "gpumemnet/timm_faketensor.csv"} {
		f, err := os.Open(filepath.Join(data, file))
		if err != nil {
			return err
		}
		cases, _, err := evaluate.Read(f, zoo.Build)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		by := map[string][]evaluate.Case{}
		for _, c := range cases {
			if !c.Truncated {
				by[c.Environment] = append(by[c.Environment], c)
			}
		}
		for _, env := range slices.Sorted(maps.Keys(by)) {
			scores, _, err := evaluate.Run(by[env], all, environment.Default, 0.95)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "\n`%s`, measured in %s: %d trainings\n\n| estimator | rows | mean | median | under | bound: under | overhead |\n|---|---|---|---|---|---|---|\n",
				filepath.Base(file), cmp.Or(env, "an environment not stated"), len(by[env]))
			seen, err := evaluate.RunSeen(by[env], all[0], environment.Default, 0.95)
			if err != nil {
				return err
			}
			scores = slices.Insert(scores, 1, seen, evaluate.RunAlone(by[env], 2), evaluate.RunAlone(by[env], 1))
			for _, s := range append(scores, evaluate.Published(by[env])...) {
				if s.Rows > 0 {
					fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s |\n", s.Method, s.Rows, percent(s.Mean), percent(s.Median), percent(s.Under), percent(s.BoundUnder), percent(s.Overhead))
				}
			}
		}
	}
	return nil
}
